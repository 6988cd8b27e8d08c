// SPDX-License-Identifier: Apache-2.0
// norm / two pass
//
// Idea     Compute the definition: the mean, then the mean square of the differences from it, then
//          y.
// Changes  Baseline.
// Cost     Each row is read three times; scalar code.
// Limits   f32, contiguous rows, no residual; one thread. Sums are kept in double, because n
//          sequential f32 additions would lose log2(n) bits.
// Source   The definition.
#include <cmath>

#include "rung/ops/norm/cpu/detail/call.hpp"

namespace rung {
namespace {

void run(const Norm::Args& args, Context&) {
  using namespace norm_lines;
  const Lines lines = lines_of(args);
  const std::int64_t n = lines.columns.size();
  const auto* gamma = static_cast<const float*>(args.gamma.data);
  const auto* beta = static_cast<const float*>(args.beta.data);
  for (std::int64_t row = 0; row < lines.rows.size(); ++row) {
    std::int64_t at[6];
    lines.rows.offsets(row, at);
    const float* x = static_cast<const float*>(args.x.data) + at[row_x];
    float* y = static_cast<float*>(args.y.data) + at[row_y];

    double mean = 0;
    if (args.kind == NormKind::layer) {
      for (std::int64_t i = 0; i < n; ++i) mean += double{x[i]};
      mean /= static_cast<double>(n);
    }
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double distance = double{x[i]} - mean;
      squares += distance * distance;
    }
    // A row whose sums overflow f32 counts as an overflow; a NaN makes all results NaN.
    if (std::isnan(squares)) mean = squares;
    const bool overflows =
        !std::isnan(squares + mean) &&
        !norm_cpu::in_range(static_cast<float>(squares), static_cast<float>(mean));
    const double rstd =
        overflows ? 0 : 1 / std::sqrt(squares / static_cast<double>(n) + args.epsilon);

    for (std::int64_t i = 0; i < n; ++i) {
      double z = (double{x[i]} - mean) * rstd;
      if (gamma != nullptr) z *= double{gamma[i]};
      if (beta != nullptr) z += double{beta[i]};
      y[i] = static_cast<float>(z);
    }
    norm_cpu::store_statistics(args, at, static_cast<float>(mean), static_cast<float>(rstd));
  }
}

const Rung<Norm> self{{.name = "two_pass",
                       .step = 10,
                       .teaching = true,
                       .supports = norm_cpu::supports_contiguous_f32,
                       .run = run}};

}  // namespace
}  // namespace rung
