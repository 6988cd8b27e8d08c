// SPDX-License-Identifier: Apache-2.0
// norm / sum of squares
//
// Idea     One pass: sum x and x^2 together; the variance is mean(x^2) - mean(x)^2.
// Changes  Against two_pass: a row is read twice instead of three times, and in f32.
// Cost     2 reads of a row.
// Limits   Catastrophic cancellation, on purpose: with a mean of 100 and a spread of 1e-3 the two
//          terms are 10^4, their difference is 10^-6, and an f32 holds 7 digits (README.md has the
//          errors). RMS norm subtracts nothing and is safe. f32, contiguous rows, no residual.
// Source   T. Chan, G. Golub & R. LeVeque, Algorithms for computing the sample variance, 1983.
#include <cmath>

#include "rung/ops/norm/cpu/detail/call.hpp"

namespace rung {
namespace {

void run(const Norm::Args& args, Context&) {
  using namespace norm_lines;
  const Lines lines = lines_of(args);
  const std::int64_t n = lines.columns.size();
  const auto count = static_cast<float>(n);
  const bool layer = args.kind == NormKind::layer;
  const auto* gamma = static_cast<const float*>(args.gamma.data);
  const auto* beta = static_cast<const float*>(args.beta.data);
  for (std::int64_t row = 0; row < lines.rows.size(); ++row) {
    std::int64_t at[6];
    lines.rows.offsets(row, at);
    const float* x = static_cast<const float*>(args.x.data) + at[row_x];
    float* y = static_cast<float*>(args.y.data) + at[row_y];

    float sum = 0;
    float squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += x[i];
      squares += x[i] * x[i];
    }
    float mean = layer ? sum / count : 0;
    float center = mean;
    const float difference = squares / count - mean * mean;
    // Clamp: rounding may make it negative, and its square root NaN.
    const float variance = difference < 0 ? 0 : difference;
    float rstd = 1 / std::sqrt(variance + static_cast<float>(args.epsilon));
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

const Rung<Norm> self{{.name = "sum_of_squares",
                       .step = 20,
                       .after = "two_pass",
                       .teaching = true,
                       .supports = norm_cpu::supports_contiguous_f32,
                       .run = run}};

}  // namespace
}  // namespace rung
