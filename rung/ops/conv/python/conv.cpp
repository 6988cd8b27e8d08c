// SPDX-License-Identifier: Apache-2.0
// conv for Python.
#include "rung/ops/conv/conv.hpp"

#include "python/module/window.hpp"

namespace rung::python {
namespace {

Extents convolved_shape(const Call& call, const Array& x, const Array& w,
                        const ConvOptions& options) {
  const int axes = image_axes(call, x, "x");
  if (w.shape().rank != x.shape().rank) {
    call.reject("w has " + axis_count(w.shape().rank) + ", x has " + axis_count(x.shape().rank));
  }
  Extents shape = x.shape();
  shape[options.channels_last ? axes + 1 : 1] = w.shape()[0];
  for (int axis = 0; axis < axes; ++axis) {
    const int at = axis + (options.channels_last ? 1 : 2);
    shape[at] = convolved_extent(x.shape()[at], w.shape()[at], options.stride.along(axis),
                                 options.padding.along(axis), options.dilation.along(axis));
  }
  return shape;
}

PyObject* run_conv(Call& call) {
  const Array x = call.in("x");
  const Array w = call.in("w");
  Array y = call.out("out");
  const Array bias = call.optional_in("bias");
  ConvOptions options;
  read_window(call, image_axes(call, x, "x"), 1, options);
  options.groups = call.integer("groups");
  options.channels_last = call.flag();
  options.winograd = call.flag();
  options.activation = call.word("activation", activation_names);
  options.bias = bias;
  if (!y.given()) y.make_if_left_out(x, convolved_shape(call, x, w, options), x.dtype());
  call.run([&](Context& context, Pick pick) { conv(context, x, w, y, options, pick); });
  return y.result();
}

PyMethodDef functions[] = {bound<"conv", run_conv>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
