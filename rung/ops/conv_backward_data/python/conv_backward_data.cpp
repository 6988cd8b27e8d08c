// SPDX-License-Identifier: Apache-2.0
// conv_backward_data for Python.
#include "rung/ops/conv_backward_data/conv_backward_data.hpp"

#include "python/module/window.hpp"

namespace rung::python {
namespace {

PyObject* run_conv_backward_data(Call& call) {
  const Array dy = call.in("dy");
  const Array w = call.in("w");
  Array dx = call.out("out");
  const Extents shape = call.integers("shape");
  const int axes = image_axes(call, dy, "dy");
  ConvBackwardDataOptions options;
  read_window(call, axes, 1, options);
  options.groups = call.integer("groups");
  options.channels_last = call.flag();
  if (!dx.given()) dx.make_if_left_out(dy, given_shape(call, shape, "shape"), dy.dtype());
  call.run(
      [&](Context& context, Pick pick) { conv_backward_data(context, dy, w, dx, options, pick); });
  return dx.result();
}

PyMethodDef functions[] = {bound<"conv_backward_data", run_conv_backward_data>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
