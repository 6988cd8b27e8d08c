// SPDX-License-Identifier: Apache-2.0
// transpose: cost and reference results. Written from the definition and independent of the rungs:
// axes are neither merged nor sorted, elements not widened.
#include "rung/ops/transpose/op/transpose.hpp"

#include "rung/harness/inputs.hpp"

namespace rung {

Cost Transpose::cost(const Args& args) {
  // Every element is read and written once. Elements of x's broadcast axes are stored once.
  const double size = static_cast<double>(size_of(args.y.dtype));
  double in = size;
  double out = size;
  for (int axis = 0; axis < args.x.rank(); ++axis) {
    const auto extent = static_cast<double>(args.x.shape[axis]);
    out *= extent;
    if (args.x.strides[axis] != 0 || extent == 0) in *= extent;
  }
  return {.bytes = in + out, .operations = 0, .written = out};
}

void Transpose::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  const int last = args.y.rank() - 1;
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  for (std::size_t i = 0; i < output.rows.size(); ++i) {
    // Decomposes the row's index in y; permuting the digits gives its index in x.
    std::int64_t rest = output.rows[i];
    std::int64_t offset = 0;
    for (int axis = last - 1; axis >= 0; --axis) {
      offset += rest % args.y.shape[axis] * args.x.strides[static_cast<int>(args.order[axis])];
      rest /= args.y.shape[axis];
    }
    const std::int64_t step = last < 0 ? 0 : args.x.strides[static_cast<int>(args.order[last])];
    for (std::int64_t j = 0; j < output.length; ++j) {
      const std::int64_t element = (offset + j * step) * size;
      const double value =
          load_as_double(args.x.dtype, static_cast<const std::byte*>(args.x.data) + element);
      const auto at = i * static_cast<std::size_t>(output.length) + static_cast<std::size_t>(j);
      output.value[at] = value;
      output.magnitude[at] = 0;
    }
  }
}

/// Returns zero tolerance: bits are moved and must be equal.
Tolerance Transpose::tolerance(const Args&, const RungInfo&, Values) { return {}; }

}  // namespace rung
