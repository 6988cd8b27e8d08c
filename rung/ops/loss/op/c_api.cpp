// SPDX-License-Identifier: Apache-2.0
// C API of loss.
#include "rung/c/options.hpp"
#include "rung/ops/loss/loss.h"
#include "rung/ops/loss/loss.hpp"

namespace {

using namespace rung::c_api;

static_assert(same(RUNG_LOSS_SQUARED, rung::LossKind::squared));
static_assert(same(RUNG_LOSS_SUM, rung::LossReduction::sum));
static_assert(RUNG_NO_LABEL == rung::no_label);

using C = rung_loss_options;
using Cpp = rung::LossOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_loss_options", choice("kind", &C::kind, &Cpp::kind, rung::LossKind::squared),
    choice("reduction", &C::reduction, &Cpp::reduction, rung::LossReduction::sum),
    field("axis", &C::axis, &Cpp::axis), field("smoothing", &C::smoothing, &Cpp::smoothing),
    field("margin", &C::margin, &Cpp::margin),
    field("ignored_label", &C::ignored_label, &Cpp::ignored_label), field("dx", &C::dx, &Cpp::dx),
    field("losses", &C::losses, &Cpp::losses));

}  // namespace

rung_status rung_loss_options_init(rung_loss_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_loss(rung_context* context, const rung_tensor* x, const rung_tensor* target,
                      const rung_tensor* result, const rung_loss_options* options) {
  return table.call(rung::loss, context, options, Argument{x, "x"}, Argument{target, "target"},
                    Argument{result, "result"});
}

rung_status rung_cross_entropy(rung_context* context, const rung_tensor* x,
                               const rung_tensor* target, const rung_tensor* result,
                               const rung_loss_options* options) {
  return table.call(rung::cross_entropy, context, options, Argument{x, "x"},
                    Argument{target, "target"}, Argument{result, "result"});
}

rung_status rung_hinge_loss(rung_context* context, const rung_tensor* x, const rung_tensor* target,
                            const rung_tensor* result, const rung_loss_options* options) {
  return table.call(rung::hinge_loss, context, options, Argument{x, "x"},
                    Argument{target, "target"}, Argument{result, "result"});
}

rung_status rung_squared_error(rung_context* context, const rung_tensor* x,
                               const rung_tensor* target, const rung_tensor* result,
                               const rung_loss_options* options) {
  return table.call(rung::squared_error, context, options, Argument{x, "x"},
                    Argument{target, "target"}, Argument{result, "result"});
}
