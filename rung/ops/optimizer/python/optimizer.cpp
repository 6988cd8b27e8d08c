// SPDX-License-Identifier: Apache-2.0
// Python bindings of optimizer.
#include "rung/ops/optimizer/optimizer.hpp"

#include "python/module/call.hpp"

namespace rung::python {
namespace {

constexpr std::string_view kind_names[] = {"sgd", "adam"};

PyObject* run_optimizer(Call& call) {
  OptimizerOptions options{.kind = call.word<OptimizerKind>("kind", kind_names)};
  const Array parameters = call.in_out("parameters");
  const Array gradients = call.in("gradients");
  const Array first = call.out("first_moment");
  const Array second = call.out("second_moment");
  options.learning_rate = call.real("learning_rate");
  options.weight_decay = call.real("weight_decay");
  options.decoupled = call.flag();
  options.momentum = call.real("momentum");
  options.nesterov = call.flag();
  options.beta1 = call.real("beta1");
  options.beta2 = call.real("beta2");
  options.epsilon = call.real("epsilon");
  options.step = call.integer("step");
  options.max_norm = call.real("max_norm");
  const Array master = call.out("master");
  const Array norm = call.out("norm");
  options.first_moment = first;
  options.second_moment = second;
  options.master = master;
  options.norm = norm;
  call.run([&](Context& context, Pick pick) {
    optimizer(context, parameters, gradients, options, pick);
  });
  return parameters.result();
}

PyMethodDef functions[] = {bound<"optimizer", run_optimizer>(), {}};
const Binding self{functions};

}  // namespace
}  // namespace rung::python
