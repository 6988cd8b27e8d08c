// SPDX-License-Identifier: Apache-2.0
// pool for Python.
#include "rung/ops/pool/pool.hpp"

#include "python/module/window.hpp"

namespace rung::python {
namespace {

constexpr std::string_view kind_names[] = {"max", "average", "l2", "weighted"};

Extents pooled_shape(const Call& call, const Array& x, const PoolOptions& options) {
  if (x.shape().rank != 4) {
    call.reject("x has " + axis_count(x.shape().rank) +
                "; accepted: 4, images and channels included");
  }
  Extents shape = x.shape();
  for (int axis = 0; axis < 2; ++axis) {
    const int at = axis + (options.channels_last ? 1 : 2);
    shape[at] =
        pooled_extent(x.shape()[at], options.kernel.along(axis), options.stride.along(axis),
                      options.padding.along(axis), options.dilation.along(axis), options.ceil_mode);
  }
  return shape;
}

PyObject* run_pool(Call& call) {
  PoolOptions options{.kind = call.word<Pooling>("kind", kind_names)};
  const Array x = call.in("x");
  Array y = call.out("out");
  options.kernel = per_axis(call, "kernel", 2, 1);
  read_window(call, 2, 0, options);
  options.ceil_mode = call.flag();
  options.count_padding = call.flag();
  options.channels_last = call.flag();
  const Array weights = call.optional_in("weights");
  const Array bias = call.optional_in("bias");
  options.activation = call.word("activation", activation_names);
  Array indices = call.out("indices");
  const bool return_indices = call.flag();
  if (!y.given() || (return_indices && !indices.given())) {
    const Extents shape = pooled_shape(call, x, options);
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
