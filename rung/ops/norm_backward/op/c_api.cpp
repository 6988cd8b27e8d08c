// SPDX-License-Identifier: Apache-2.0
// C API of norm_backward.
#include "rung/c/options.hpp"
#include "rung/ops/norm_backward/norm_backward.h"
#include "rung/ops/norm_backward/norm_backward.hpp"

namespace {

using namespace rung::c_api;
using C = rung_norm_backward_options;
using Cpp = rung::NormBackwardOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_norm_backward_options", field("axis", &C::axis, &Cpp::axis),
    field("axes", &C::axes, &Cpp::axes), field("epsilon", &C::epsilon, &Cpp::epsilon),
    field("gamma", &C::gamma, &Cpp::gamma), field("mean", &C::mean, &Cpp::mean),
    field("rstd", &C::rstd, &Cpp::rstd), field("dgamma", &C::dgamma, &Cpp::dgamma),
    field("dbeta", &C::dbeta, &Cpp::dbeta));

}  // namespace

rung_status rung_norm_backward_options_init(rung_norm_backward_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_layer_norm_backward(rung_context* context, const rung_tensor* dy,
                                     const rung_tensor* x, const rung_tensor* dx,
                                     const rung_norm_backward_options* options) {
  return table.call(rung::layer_norm_backward, context, options, Argument{dy, "dy"},
                    Argument{x, "x"}, Argument{dx, "dx"});
}

rung_status rung_rms_norm_backward(rung_context* context, const rung_tensor* dy,
                                   const rung_tensor* x, const rung_tensor* dx,
                                   const rung_norm_backward_options* options) {
  return table.call(rung::rms_norm_backward, context, options, Argument{dy, "dy"}, Argument{x, "x"},
                    Argument{dx, "dx"});
}
