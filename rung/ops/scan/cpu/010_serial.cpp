// SPDX-License-Identifier: Apache-2.0
// scan / serial
//
// Idea     The definition: one running sum per line.
// Changes  Baseline.
// Cost     Each element is read and written once; each addition depends on the previous one: two to
//          four cycles per element.
// Limits   Inclusive sums of f32, without segments.
// Source   any textbook.
#include "rung/ops/scan/op/scan.hpp"

namespace rung {
namespace {

void run(const Scan::Args& args, Context&) {
  const std::int64_t n = args.length();
  const std::int64_t x_stride = args.x_stride();
  const std::int64_t y_stride = args.y_stride();
  for (std::int64_t line = 0; line < args.lines.size(); ++line) {
    const float* x = static_cast<const float*>(args.x.data) + args.lines.offset<0>(line);
    float* y = static_cast<float*>(args.y.data) + args.lines.offset<1>(line);
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += x[i * x_stride];
      y[i * y_stride] = sum;
    }
  }
}

Support supports(const Scan::Args& args, const Context&) {
  if (args.operation != ScanOperation::sum || args.exclusive) {
    return unsupported("inclusive sums only");
  }
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.has_segments()) return unsupported("no segments");
  return supported;
}

const Rung<Scan> self{
    {.name = "serial", .step = 10, .teaching = true, .supports = supports, .run = run}};
}  // namespace
}  // namespace rung
