// SPDX-License-Identifier: Apache-2.0
// norm / Welford
//
// Idea     One stable pass: a running mean and the sum of squares of the differences from it, both
//          updated with each element. RMS norm has no mean.
// Changes  Against sum_of_squares: no cancellation.
// Cost     2 reads of a row; one division per element in a loop-carried dependency chain.
// Limits   The mean carries the rounding of n updates: with a mean of 100, errors are those of
//          numbers around 100, which two_pass avoids. f32, contiguous rows, no residual; one
//          thread.
// Source   B. Welford, Note on a method for calculating corrected sums of squares and products,
//          1962.
#include <cmath>

#include "rung/ops/norm/cpu/detail/call.hpp"

namespace rung {
namespace {

void run(const Norm::Args& args, Context&) {
  using namespace norm_lines;
  const Lines lines = lines_of(args);
  const std::int64_t n = lines.columns.size();
  const bool layer = args.kind == NormKind::layer;
  const auto* gamma = static_cast<const float*>(args.gamma.data);
  const auto* beta = static_cast<const float*>(args.beta.data);
  for (std::int64_t row = 0; row < lines.rows.size(); ++row) {
    std::int64_t at[6];
    lines.rows.offsets(row, at);
    const float* x = static_cast<const float*>(args.x.data) + at[row_x];
    float* y = static_cast<float*>(args.y.data) + at[row_y];

    float mean = 0;
    float squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const float before = x[i] - mean;
      if (layer) mean += before / static_cast<float>(i + 1);
      squares += before * (x[i] - mean);
    }
    const float variance = squares / static_cast<float>(n);  // 0 / 0 = NaN for an empty row
    float rstd = 1 / std::sqrt(variance + static_cast<float>(args.epsilon));
    if (layer && n == 0) mean = variance;
    float center = mean;
    if (layer && !norm_cpu::in_range(squares, mean)) {
      mean = norm_cpu::moments_past_overflow<float>([x](std::int64_t i) { return x[i]; }, n).center;
      rstd = 0 * std::abs(mean);  // or NaN
      center = rstd;
    }

    for (std::int64_t i = 0; i < n; ++i) {
      const float z = (x[i] - center) * rstd;
      y[i] = z * (gamma != nullptr ? gamma[i] : 1) + (beta != nullptr ? beta[i] : 0);
    }
    norm_cpu::store_statistics(args, at, mean, rstd);
  }
}

const Rung<Norm> self{{.name = "welford",
                       .step = 30,
                       .after = "sum_of_squares",
                       .teaching = true,
                       .supports = norm_cpu::supports_contiguous_f32,
                       .run = run}};

}  // namespace
}  // namespace rung
