// SPDX-License-Identifier: Apache-2.0
// Python binding of softmax.
#include "rung/ops/softmax/softmax.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

PyObject* run_softmax(Call& call) {
  const Array x = call.in("x");
  Array y = call.out("out");
  const SoftmaxOptions options{
      .axis = call.integer("axis"), .scale = call.real("scale"), .log = call.flag()};
  y.make_if_left_out(x);
  call.run([&](Context& context, Pick pick) { softmax(context, x, y, options, pick); });
  return y.result();
}

PyMethodDef functions[] = {bound<"softmax", run_softmax>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
