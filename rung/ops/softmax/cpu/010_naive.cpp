// SPDX-License-Identifier: Apache-2.0
// softmax / naive
//
// Idea     Compute the definition: the exponential of each element divided by the sum of all.
// Changes  baseline.
// Cost     x is read twice, y written once; two exponentials per element.
// Limits   The rung that fails on purpose: exp overflows above 88.7 in f32 and infinity / infinity
//          is NaN; far below 0 all exponentials vanish and 0 is divided by 0. supports() therefore
//          reads x and accepts only values that the definition handles. f32, no logarithm.
// Source   any textbook.
#include <cmath>

#include "rung/ops/softmax/shared/value_range.hpp"

namespace rung {
namespace {

void run(const Softmax::Args& args, Context&) {
  const std::int64_t n = args.length();
  const std::int64_t x_step = args.rows.steps[0];
  const std::int64_t y_step = args.rows.steps[1];
  const auto scale = static_cast<float>(args.scale);
  for (std::int64_t row = 0; row < args.count(); ++row) {
    const float* x = static_cast<const float*>(args.x.data) + args.rows.offset<0>(row);
    float* y = static_cast<float*>(args.y.data) + args.rows.offset<1>(row);
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::exp(scale * x[i * x_step]);
    for (std::int64_t i = 0; i < n; ++i) y[i * y_step] = std::exp(scale * x[i * x_step]) / sum;
  }
}

const Rung<Softmax> self{{.name = "naive",
                          .step = 10,
                          .teaching = true,
                          .supports = softmax_values::supports_naive,
                          .run = run}};

}  // namespace
}  // namespace rung
