// SPDX-License-Identifier: Apache-2.0
// pool for Python.
#include "rung/ops/pool/pool.hpp"

#include "python/module/window.hpp"

namespace rung::python {
namespace {

constexpr std::string_view kind_names[] = {"max", "average", "l2", "weighted"};

Extents pooled_shape(const Call& call, const Array& x, const AxisOption& kernel,
                     const Window& window, bool ceil_mode, bool channels_last) {
  if (x.shape().rank != 4) {
    call.reject("x has " + axis_count(x.shape().rank) +
                "; accepted: 4, images and channels included");
  }
  Extents shape = x.shape();
  for (int axis = 0; axis < 2; ++axis) {
    const int at = axis + (channels_last ? 1 : 2);
    shape[at] = pooled_extent(x.shape()[at], kernel.at[axis], window.stride.at[axis],
                              window.padding.at[axis], window.dilation.at[axis], ceil_mode);
  }
  return shape;
}

PyObject* run_pool(Call& call) {
  PoolOptions options{.kind = call.word<Pooling>("kind", kind_names)};
  const Array x = call.in("x");
  Array y = call.out("out");
  const AxisOption kernel = axis_option(call, "kernel", 2, 1);
  const Window window = window_of(call, 2, 0);
  set_kernel(options, kernel);
  set_window(options, window, 2);
  options.ceil_mode = call.flag();
  options.count_padding = call.flag();
  options.channels_last = call.flag();
  const Array weights = call.optional_in("weights");
  const Array bias = call.optional_in("bias");
  options.activation = call.word("activation", activation_names);
  Array indices = call.out("indices");
  const bool return_indices = call.flag();
  if (!y.given() || (return_indices && !indices.given())) {
    const Extents shape =
        pooled_shape(call, x, kernel, window, options.ceil_mode, options.channels_last);
    y.make_if_left_out(x, shape, x.dtype());
    if (return_indices) indices.make_if_left_out(x, shape, DType::i64);
  }
  options.weights = weights;
  options.bias = bias;
  options.indices = indices;
  call.run([&](Context& context, Pick pick) { pool(context, x, y, options, pick); });
  return return_indices ? call.pair(y, indices) : y.result();
}

PyMethodDef functions[] = {bound<"pool", run_pool>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
