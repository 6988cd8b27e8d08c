// SPDX-License-Identifier: Apache-2.0
// softmax for Python.
#include "rung/ops/softmax/softmax.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

SoftmaxOptions options_of(Call& call) {
  return {.axis = call.integer("axis"), .scale = call.real("scale"), .log = call.flag()};
}

PyObject* run_softmax(Call& call) {
  const Array x = call.in("x");
  Array y = call.out("out");
  const SoftmaxOptions options = options_of(call);
  y.make_if_left_out(x);
  call.run([&](Context& context, Pick pick) { softmax(context, x, y, options, pick); });
  return y.result();
}

PyObject* run_softmax_backward(Call& call) {
  const Array y = call.in("y");
  const Array dy = call.in("dy");
  Array dx = call.out("out");
  const SoftmaxOptions options = options_of(call);
  dx.make_if_left_out(y);
  call.run(
      [&](Context& context, Pick pick) { softmax_backward(context, y, dy, dx, options, pick); });
  return dx.result();
}

PyMethodDef functions[] = {
    bound<"softmax", run_softmax>(), bound<"softmax_backward", run_softmax_backward>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
