// SPDX-License-Identifier: Apache-2.0
// Python binding of softmax_backward.
#include "rung/ops/softmax_backward/softmax_backward.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

PyObject* run_softmax_backward(Call& call) {
  const Array y = call.in("y");
  const Array dy = call.in("dy");
  Array dx = call.out("out");
  const SoftmaxOptions options{
      .axis = call.integer("axis"), .scale = call.real("scale"), .log = call.flag()};
  dx.make_if_left_out(y);
  call.run(
      [&](Context& context, Pick pick) { softmax_backward(context, y, dy, dx, options, pick); });
  return dx.result();
}

PyMethodDef functions[] = {bound<"softmax_backward", run_softmax_backward>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
