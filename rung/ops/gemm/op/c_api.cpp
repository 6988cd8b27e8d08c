// SPDX-License-Identifier: Apache-2.0
// gemm's C functions.
#include <vector>

#include "rung/c/options.hpp"
#include "rung/ops/gemm/gemm.h"
#include "rung/ops/gemm/gemm.hpp"

namespace {

using namespace rung::c_api;
using C = rung_gemm_options;
using Cpp = rung::GemmOptions;
using rung::Activation;
using rung::Precision;

static_assert(same(RUNG_ACTIVATION_NONE, Activation::none));
static_assert(same(RUNG_ACTIVATION_RELU, Activation::relu));
static_assert(same(RUNG_ACTIVATION_GELU, Activation::gelu));
static_assert(same(RUNG_ACTIVATION_SIGMOID, Activation::sigmoid));
static_assert(same(RUNG_ACTIVATION_TANH, Activation::tanh));
static_assert(same(RUNG_PRECISION_FULL, Precision::full));
static_assert(same(RUNG_PRECISION_TF32, Precision::tf32));
static_assert(same(RUNG_PRECISION_SPLIT, Precision::split));

constexpr auto table = options_table<C, Cpp>(
    "rung_gemm_options", field("alpha", &C::alpha, &Cpp::alpha),
    field("beta", &C::beta, &Cpp::beta), field("transpose_a", &C::transpose_a, &Cpp::transpose_a),
    field("transpose_b", &C::transpose_b, &Cpp::transpose_b), field("bias", &C::bias, &Cpp::bias),
    choice("activation", &C::activation, &Cpp::activation, Activation::tanh),
    choice("precision", &C::precision, &Cpp::precision, Precision::split),
    field("residual", &C::residual, &Cpp::residual), field("scale_a", &C::scale_a, &Cpp::scale_a),
    field("scale_b", &C::scale_b, &Cpp::scale_b));

}  // namespace

rung_status rung_gemm_options_init(rung_gemm_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_gemm(rung_context* context, const rung_tensor* a, const rung_tensor* b,
                      const rung_tensor* c, const rung_gemm_options* options) {
  return table.call(rung::gemm, context, options, Argument{a, "a"}, Argument{b, "b"},
                    Argument{c, "c"});
}

rung_status rung_gemm_grouped(rung_context* context, const rung_gemm_problem* problems,
                              size_t count, const rung_gemm_options* options) {
  const auto multiply = [&](rung::Context& where, const rung::TensorRef&, const Cpp& checked,
                            rung::Pick pick) {
    if (count > 0) require(problems, {"problems"});
    std::vector<rung::GemmProblem> list;
    list.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const rung_gemm_problem& one = problems[i];
      list.push_back({.a = reference({one.a, "a"}),
                      .b = reference({one.b, "b"}),
                      .c = reference({one.c, "c"}),
                      .bias = reference({one.bias, "bias", true}),
                      .residual = reference({one.residual, "residual", true})});
    }
    rung::gemm_grouped(where, list, checked, pick);
  };
  // table.call() requires a tensor argument: an optional one that is absent.
  return table.call(multiply, context, options, Argument{nullptr, "nothing", true});
}
