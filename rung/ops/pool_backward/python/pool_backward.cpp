// SPDX-License-Identifier: Apache-2.0
// pool_backward for Python.
#include "rung/ops/pool_backward/pool_backward.hpp"

#include "python/module/window.hpp"

namespace rung::python {
namespace {

constexpr std::string_view kind_names[] = {"max", "average", "l2", "weighted"};

PyObject* run_pool_backward(Call& call) {
  PoolBackwardOptions options{.kind = call.word<Pooling>("kind", kind_names)};
  const Array dy = call.in("dy");
  Array dx = call.out("out");
  const Extents shape = call.integers("shape");
  options.kernel = per_axis(call, "kernel", 2, 1);
  read_window(call, 2, 0, options);
  options.ceil_mode = call.flag();
  options.count_padding = call.flag();
  options.channels_last = call.flag();
  const Array indices = call.optional_in("indices");
  const Array x = call.optional_in("x");
  const Array y = call.optional_in("y");
  const Array weights = call.optional_in("weights");
  options.indices = indices;
  options.x = x;
  options.y = y;
  options.weights = weights;
  if (!dx.given()) {
    dx.make_if_left_out(dy, x.given() ? x.shape() : given_shape(call, shape, "shape"), dy.dtype());
  }
  call.run([&](Context& context, Pick pick) { pool_backward(context, dy, dx, options, pick); });
  return dx.result();
}

PyMethodDef functions[] = {bound<"pool_backward", run_pool_backward>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
