// SPDX-License-Identifier: Apache-2.0
// norm / Welford
//
// Idea     one pass that keeps its digits: a running mean, and the sum of squares of the distances
//          from it, both updated with each element. RMS norm has no mean to keep.
// Changes  against sum_of_squares: nothing large is subtracted from anything large.
// Cost     2 reads of a row; a division per element, and every step waits for the one before.
// Limits   the mean carries the rounding of n updates: with a mean of 100, that of numbers around
//          100, which two_pass does not have. f32 and f64; one thread.
// Source   B. Welford, Note on a method for calculating corrected sums of squares and products,
//          1962.
#include <cmath>

#include "rung/ops/norm/cpu/detail/textbook.hpp"

namespace rung {
namespace {

using norm_cpu::Statistics;

template <class T>
void welford(const Norm::Args& args) {
  const bool layer = args.kind == NormKind::layer;
  norm_cpu::Textbook<T, T> textbook(args);
  textbook.for_each_row([&](const auto& value, std::int64_t n) {
    T mean = 0;
    T squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const T s = value(i);
      const T before = s - mean;
      if (layer) mean += before / static_cast<T>(i + 1);
      squares += before * (s - mean);
    }
    if (layer && !norm_cpu::in_range(squares, mean)) {
      return norm_cpu::statistics_past_overflow<T>(value, n);
    }
    // n = 0 must give NaN, as 0 / 0 does.
    if (layer && n == 0) mean = squares / static_cast<T>(n);
    return Statistics<T>{mean,
                         1 / std::sqrt(squares / static_cast<T>(n) + static_cast<T>(args.epsilon))};
  });
}

Support supports(const Norm::Args& args, const Context&) {
  const bool takes = args.x.dtype == DType::f32 || args.x.dtype == DType::f64;
  return takes ? supported : unsupported("f32 and f64 only");
}

void run(const Norm::Args& args, Context&) {
  visit<float, double>(args.x.dtype, [&]<class T>() { welford<T>(args); });
}

const Rung<Norm> self{{.name = "welford",
                       .step = 30,
                       .after = "sum_of_squares",
                       .teaching = true,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
