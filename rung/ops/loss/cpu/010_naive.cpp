// SPDX-License-Identifier: Apache-2.0
// loss / naive
//
// Idea     Compute the definition in three passes over a row: the maximum; the sum of exponentials
//          relative to it, which gives the loss; the gradient, softmax minus 1 at the label.
// Changes  Baseline.
// Cost     x is read three times, from the cache after the first; two exponentials per element.
// Limits   Cross entropy of f32 in contiguous rows, no ignored label, no smoothing; one thread. The
//          maximum is necessary: exp(89) is infinite in f32, and infinity / infinity is NaN.
// Source   The definition.
#include <algorithm>
#include <cmath>

#include "rung/ops/loss/cpu/detail/rows.hpp"

namespace rung {
namespace {

void run(const Loss::Args& args, Context&) {
  const auto labels = LossLabels::of(args);
  const std::int64_t classes = args.classes();
  const auto factor = static_cast<float>(loss_cpu::factor_of(args, args.count()));
  double all = 0;
  for (std::int64_t number = 0; number < args.count(); ++number) {
    const loss_cpu::Row<float> row(args, labels, number);
    if (row.is_wrong) {
      all += row.write_without_label(classes);
      continue;
    }
    const float* x = row.x;
    float maximum = x[0];
    for (std::int64_t c = 1; c < classes; ++c) maximum = std::max(maximum, x[c]);
    float sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - maximum);
    const float loss = std::log(sum) + (maximum - x[row.label]);
    if (row.loss != nullptr) *row.loss = loss;
    all += static_cast<double>(loss);
    if (row.dx == nullptr) continue;
    for (std::int64_t c = 0; c < classes; ++c) {
      const float p = std::exp(x[c] - maximum) / sum;
      row.dx[c] = (c == row.label ? p - 1 : p) * factor;
    }
  }
  loss_cpu::write_result(args, all, args.count());
}

Support supports(const Loss::Args& args, const Context&) {
  if (args.options.kind != LossKind::cross_entropy || args.options.smoothing != 0) {
    return unsupported("cross entropy without smoothing");
  }
  if (args.ignores()) return unsupported("no ignored label");
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  return args.contiguous() ? supported : unsupported("the rows must be contiguous");
}

const Rung<Loss> self{
    {.name = "naive", .step = 10, .teaching = true, .supports = supports, .run = run}};

}  // namespace
}  // namespace rung
