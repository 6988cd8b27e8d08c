// SPDX-License-Identifier: Apache-2.0
// C interface of activation_backward.
#include "rung/c/options.hpp"
#include "rung/ops/activation_backward/activation_backward.h"
#include "rung/ops/activation_backward/activation_backward.hpp"

namespace {

using namespace rung::c_api;
using rung::ActivationFunction;

static_assert(same(RUNG_ACTIVATION_FUNCTION_SIGN, ActivationFunction::sign));
static_assert(same(RUNG_ACTIVATION_FUNCTION_SIGMOID, ActivationFunction::sigmoid));
static_assert(same(RUNG_ACTIVATION_FUNCTION_TANH, ActivationFunction::tanh));
static_assert(same(RUNG_ACTIVATION_FUNCTION_RELU, ActivationFunction::relu));
static_assert(same(RUNG_ACTIVATION_FUNCTION_GELU, ActivationFunction::gelu));
static_assert(same(RUNG_ACTIVATION_FUNCTION_SILU, ActivationFunction::silu));

using C = rung_activation_backward_options;
using Cpp = rung::ActivationBackwardOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_activation_backward_options",
    choice("function", &C::function, &Cpp::function, ActivationFunction::silu));

}  // namespace

rung_status rung_activation_backward_options_init(rung_activation_backward_options* options,
                                                  size_t size) {
  return table.init(options, size);
}

rung_status rung_activation_backward(rung_context* context, const rung_tensor* saved,
                                     const rung_tensor* dy, const rung_tensor* dx,
                                     const rung_activation_backward_options* options) {
  return table.call(rung::activation_backward, context, options, Argument{saved, "saved"},
                    Argument{dy, "dy"}, Argument{dx, "dx"});
}

rung_status rung_sign_backward(rung_context* context, const rung_tensor* saved,
                               const rung_tensor* dy, const rung_tensor* dx) {
  return call_without_options(rung::sign_backward, context, Argument{saved, "saved"},
                              Argument{dy, "dy"}, Argument{dx, "dx"});
}

rung_status rung_sigmoid_backward(rung_context* context, const rung_tensor* saved,
                                  const rung_tensor* dy, const rung_tensor* dx) {
  return call_without_options(rung::sigmoid_backward, context, Argument{saved, "saved"},
                              Argument{dy, "dy"}, Argument{dx, "dx"});
}

rung_status rung_tanh_backward(rung_context* context, const rung_tensor* saved,
                               const rung_tensor* dy, const rung_tensor* dx) {
  return call_without_options(rung::tanh_backward, context, Argument{saved, "saved"},
                              Argument{dy, "dy"}, Argument{dx, "dx"});
}

rung_status rung_relu_backward(rung_context* context, const rung_tensor* saved,
                               const rung_tensor* dy, const rung_tensor* dx) {
  return call_without_options(rung::relu_backward, context, Argument{saved, "saved"},
                              Argument{dy, "dy"}, Argument{dx, "dx"});
}

rung_status rung_gelu_backward(rung_context* context, const rung_tensor* saved,
                               const rung_tensor* dy, const rung_tensor* dx) {
  return call_without_options(rung::gelu_backward, context, Argument{saved, "saved"},
                              Argument{dy, "dy"}, Argument{dx, "dx"});
}

rung_status rung_silu_backward(rung_context* context, const rung_tensor* saved,
                               const rung_tensor* dy, const rung_tensor* dx) {
  return call_without_options(rung::silu_backward, context, Argument{saved, "saved"},
                              Argument{dy, "dy"}, Argument{dx, "dx"});
}
