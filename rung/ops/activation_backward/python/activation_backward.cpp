// SPDX-License-Identifier: Apache-2.0
// Python bindings of activation_backward.
#include "rung/ops/activation_backward/activation_backward.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

constexpr std::string_view function_names[] = {"sign", "sigmoid", "tanh", "relu", "gelu", "silu"};

PyObject* run_activation_backward(Call& call) {
  const auto function = call.word<ActivationFunction>("function", function_names);
  const Array saved = call.in("saved");
  const Array dy = call.in("dy");
  Array dx = call.out("out");
  dx.make_if_left_out(saved);
  call.run([&](Context& context, Pick pick) {
    activation_backward(context, saved, dy, dx, {.function = function}, pick);
  });
  return dx.result();
}

PyMethodDef functions[] = {bound<"activation_backward", run_activation_backward>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
