// SPDX-License-Identifier: Apache-2.0
// C interface of elementwise.
#include "rung/c/options.hpp"
#include "rung/ops/elementwise/elementwise.h"
#include "rung/ops/elementwise/elementwise.hpp"

namespace {

using namespace rung::c_api;
using C = rung_elementwise_options;
using Cpp = rung::ElementwiseOptions;
using rung::ElementwiseFunction;

static_assert(same(RUNG_ELEMENTWISE_ADD, ElementwiseFunction::add));
static_assert(same(RUNG_ELEMENTWISE_SUB, ElementwiseFunction::sub));
static_assert(same(RUNG_ELEMENTWISE_MUL, ElementwiseFunction::mul));
static_assert(same(RUNG_ELEMENTWISE_DIV, ElementwiseFunction::div));
static_assert(same(RUNG_ELEMENTWISE_AXPY, ElementwiseFunction::axpy));
static_assert(same(RUNG_ELEMENTWISE_FMA, ElementwiseFunction::fma));
static_assert(same(RUNG_ELEMENTWISE_RELU, ElementwiseFunction::relu));
static_assert(same(RUNG_ELEMENTWISE_SIGMOID, ElementwiseFunction::sigmoid));
static_assert(same(RUNG_ELEMENTWISE_TANH, ElementwiseFunction::tanh));
static_assert(same(RUNG_ELEMENTWISE_GELU, ElementwiseFunction::gelu));
static_assert(same(RUNG_ELEMENTWISE_EXP, ElementwiseFunction::exp));
static_assert(same(RUNG_ELEMENTWISE_SILU, ElementwiseFunction::silu));
static_assert(same(RUNG_ELEMENTWISE_SIGN, ElementwiseFunction::sign));

constexpr auto table = options_table<C, Cpp>(
    "rung_elementwise_options",
    choice("function", &C::function, &Cpp::function, ElementwiseFunction::sign),
    field("alpha", &C::alpha, &Cpp::alpha));

}  // namespace

rung_status rung_elementwise_options_init(rung_elementwise_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_elementwise(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                             const rung_tensor* w, const rung_tensor* z,
                             const rung_elementwise_options* options) {
  using rung::TensorRef;
  const auto elementwise = [](rung::Context& on, const TensorRef& x_ref, const TensorRef& y_ref,
                              const TensorRef& w_ref, const TensorRef& z_ref, const Cpp& checked,
                              rung::Pick pick) {
    rung::elementwise(on, {x_ref, y_ref, w_ref}, z_ref, checked, pick);
  };
  constexpr bool optional = true;
  return table.call(elementwise, context, options, Argument{x, "x"}, Argument{y, "y", optional},
                    Argument{w, "w", optional}, Argument{z, "z"});
}

rung_status rung_add(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                     const rung_tensor* z) {
  return call_without_options(rung::add, context, Argument{x, "x"}, Argument{y, "y"},
                              Argument{z, "z"});
}

rung_status rung_subtract(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                          const rung_tensor* z) {
  return call_without_options(rung::subtract, context, Argument{x, "x"}, Argument{y, "y"},
                              Argument{z, "z"});
}

rung_status rung_multiply(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                          const rung_tensor* z) {
  return call_without_options(rung::multiply, context, Argument{x, "x"}, Argument{y, "y"},
                              Argument{z, "z"});
}

rung_status rung_divide(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                        const rung_tensor* z) {
  return call_without_options(rung::divide, context, Argument{x, "x"}, Argument{y, "y"},
                              Argument{z, "z"});
}

rung_status rung_axpy(rung_context* context, double alpha, const rung_tensor* x,
                      const rung_tensor* y, const rung_tensor* z) {
  const auto with_alpha = [alpha](rung::Context& on, const rung::TensorRef& x_ref,
                                  const rung::TensorRef& y_ref, const rung::TensorRef& z_ref,
                                  rung::Pick pick) {
    rung::axpy(on, alpha, x_ref, y_ref, z_ref, pick);
  };
  return call_without_options(with_alpha, context, Argument{x, "x"}, Argument{y, "y"},
                              Argument{z, "z"});
}

rung_status rung_multiply_add(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                              const rung_tensor* w, const rung_tensor* z) {
  return call_without_options(rung::multiply_add, context, Argument{x, "x"}, Argument{y, "y"},
                              Argument{w, "w"}, Argument{z, "z"});
}

rung_status rung_relu(rung_context* context, const rung_tensor* x, const rung_tensor* z) {
  return call_without_options(rung::relu, context, Argument{x, "x"}, Argument{z, "z"});
}

rung_status rung_sigmoid(rung_context* context, const rung_tensor* x, const rung_tensor* z) {
  return call_without_options(rung::sigmoid, context, Argument{x, "x"}, Argument{z, "z"});
}

rung_status rung_tanh(rung_context* context, const rung_tensor* x, const rung_tensor* z) {
  return call_without_options(rung::tanh, context, Argument{x, "x"}, Argument{z, "z"});
}

rung_status rung_gelu(rung_context* context, const rung_tensor* x, const rung_tensor* z) {
  return call_without_options(rung::gelu, context, Argument{x, "x"}, Argument{z, "z"});
}

rung_status rung_silu(rung_context* context, const rung_tensor* x, const rung_tensor* z) {
  return call_without_options(rung::silu, context, Argument{x, "x"}, Argument{z, "z"});
}

rung_status rung_exp(rung_context* context, const rung_tensor* x, const rung_tensor* z) {
  return call_without_options(rung::exp, context, Argument{x, "x"}, Argument{z, "z"});
}

rung_status rung_sign(rung_context* context, const rung_tensor* x, const rung_tensor* z) {
  return call_without_options(rung::sign, context, Argument{x, "x"}, Argument{z, "z"});
}
