// SPDX-License-Identifier: Apache-2.0
// C API of norm.
#include "rung/c/options.hpp"
#include "rung/ops/norm/norm.h"
#include "rung/ops/norm/norm.hpp"

namespace {

using namespace rung::c_api;
using C = rung_norm_options;
using Cpp = rung::NormOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_norm_options", field("axis", &C::axis, &Cpp::axis), field("axes", &C::axes, &Cpp::axes),
    field("epsilon", &C::epsilon, &Cpp::epsilon), field("gamma", &C::gamma, &Cpp::gamma),
    field("beta", &C::beta, &Cpp::beta), field("residual", &C::residual, &Cpp::residual),
    field("sum", &C::sum, &Cpp::sum), field("mean", &C::mean, &Cpp::mean),
    field("rstd", &C::rstd, &Cpp::rstd));

}  // namespace

rung_status rung_norm_options_init(rung_norm_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_layer_norm(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                            const rung_norm_options* options) {
  return table.call(rung::layer_norm, context, options, Argument{x, "x"}, Argument{y, "y"});
}

rung_status rung_rms_norm(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                          const rung_norm_options* options) {
  return table.call(rung::rms_norm, context, options, Argument{x, "x"}, Argument{y, "y"});
}
