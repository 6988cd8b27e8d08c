// SPDX-License-Identifier: Apache-2.0
// transpose: what it must cost and what it must give. Written from the definition, with nothing of
// what the rungs share: axes neither merged nor sorted, elements neither widened.
#include "rung/ops/transpose/op/transpose.hpp"

#include "rung/harness/inputs.hpp"

namespace rung {

Cost Transpose::cost(const Args& args) {
  // Every element read and written once. Broadcast axes of x are in memory once.
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
    // The row's index in y, digit by digit, is an index of x with its digits moved.
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

/// Bits are moved: nothing may differ.
Tolerance Transpose::tolerance(const Args&, const RungInfo&, Values) { return {}; }

}  // namespace rung
