// SPDX-License-Identifier: Apache-2.0
// norm / sum of squares
//
// Idea     one pass is enough: sum s and s^2 together, the variance is mean(s^2) - mean(s)^2.
// Changes  against two_pass: a row is read twice instead of three times, and in f32.
// Cost     2 reads of a row.
// Limits   it fails on purpose: the two terms agree in all leading digits when the mean is large
//          against the spread. With a mean of 100 and a spread of 1e-3 they are 10^4, their
//          difference is 10^-6, and an f32 holds 7 digits: nothing is left (README.md shows what
//          comes out). RMS norm subtracts nothing and is safe. f32 only; never picked.
// Source   T. Chan, G. Golub & R. LeVeque, Algorithms for computing the sample variance, 1983.
#include <algorithm>
#include <cmath>

#include "rung/ops/norm/cpu/detail/textbook.hpp"

namespace rung {
namespace {

using norm_cpu::Statistics;

Support supports(const Norm::Args& args, const Context&) {
  return args.x.dtype == DType::f32 ? supported : unsupported("f32 only");
}

void run(const Norm::Args& args, Context&) {
  norm_cpu::Textbook<float, float> textbook(args);
  textbook.for_each_row([&](const auto& value, std::int64_t n) {
    float sum = 0;
    float squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const float s = value(i);
      sum += s;
      squares += s * s;
    }
    const bool layer = args.kind == NormKind::layer;
    const auto count = static_cast<float>(n);
    const float mean = layer ? sum / count : 0;
    if (layer && !norm_cpu::in_range(squares, mean)) {
      return norm_cpu::statistics_past_overflow<float>(value, n);
    }
    const float difference = squares / count - mean * mean;
    // Rounding makes it negative; the square root of that would be NaN.
    const float variance = difference < 0 ? 0 : difference;
    return Statistics<float>{mean, 1 / std::sqrt(variance + static_cast<float>(args.epsilon))};
  });
}

const Rung<Norm> self{{.name = "sum_of_squares",
                       .step = 20,
                       .after = "two_pass",
                       .teaching = true,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
