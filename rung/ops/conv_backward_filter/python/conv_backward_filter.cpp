// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter for Python.
#include "rung/ops/conv_backward_filter/conv_backward_filter.hpp"

#include "python/module/window.hpp"

namespace rung::python {
namespace {

PyObject* run_conv_backward_filter(Call& call) {
  const Array x = call.in("x");
  const Array dy = call.in("dy");
  Array dw = call.out("out");
  const Extents shape = call.integers("shape");
  const int axes = image_axes(call, x, "x");
  ConvBackwardFilterOptions options;
  read_window(call, axes, 1, options);
  options.groups = call.integer("groups");
  options.channels_last = call.flag();
  if (!dw.given()) dw.make_if_left_out(x, given_shape(call, shape, "shape"), x.dtype());
  call.run([&](Context& context, Pick pick) {
    conv_backward_filter(context, x, dy, dw, options, pick);
  });
  return dw.result();
}

PyMethodDef functions[] = {bound<"conv_backward_filter", run_conv_backward_filter>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
