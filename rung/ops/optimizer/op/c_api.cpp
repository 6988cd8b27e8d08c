// SPDX-License-Identifier: Apache-2.0
// C interface of optimizer.
#include "rung/c/options.hpp"
#include "rung/ops/optimizer/optimizer.h"
#include "rung/ops/optimizer/optimizer.hpp"

namespace {

using namespace rung::c_api;

static_assert(same(RUNG_OPTIMIZER_SGD, rung::OptimizerKind::sgd));
static_assert(same(RUNG_OPTIMIZER_ADAM, rung::OptimizerKind::adam));

using C = rung_optimizer_options;
using Cpp = rung::OptimizerOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_optimizer_options", choice("kind", &C::kind, &Cpp::kind, rung::OptimizerKind::adam),
    field("learning_rate", &C::learning_rate, &Cpp::learning_rate),
    field("weight_decay", &C::weight_decay, &Cpp::weight_decay),
    field("decoupled", &C::decoupled, &Cpp::decoupled),
    field("momentum", &C::momentum, &Cpp::momentum),
    field("nesterov", &C::nesterov, &Cpp::nesterov), field("beta1", &C::beta1, &Cpp::beta1),
    field("beta2", &C::beta2, &Cpp::beta2), field("epsilon", &C::epsilon, &Cpp::epsilon),
    field("step", &C::step, &Cpp::step), field("max_norm", &C::max_norm, &Cpp::max_norm),
    field("first_moment", &C::first_moment, &Cpp::first_moment),
    field("second_moment", &C::second_moment, &Cpp::second_moment),
    field("master", &C::master, &Cpp::master), field("norm", &C::norm, &Cpp::norm));

}  // namespace

rung_status rung_optimizer_options_init(rung_optimizer_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_optimizer(rung_context* context, const rung_tensor* parameters,
                           const rung_tensor* gradients, const rung_optimizer_options* options) {
  return table.call(rung::optimizer, context, options, Argument{parameters, "parameters"},
                    Argument{gradients, "gradients"});
}

rung_status rung_sgd_step(rung_context* context, const rung_tensor* parameters,
                          const rung_tensor* gradients, const rung_optimizer_options* options) {
  return table.call(rung::sgd_step, context, options, Argument{parameters, "parameters"},
                    Argument{gradients, "gradients"});
}

rung_status rung_adam_step(rung_context* context, const rung_tensor* parameters,
                           const rung_tensor* gradients, const rung_optimizer_options* options) {
  return table.call(rung::adam_step, context, options, Argument{parameters, "parameters"},
                    Argument{gradients, "gradients"});
}
