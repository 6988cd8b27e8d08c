// SPDX-License-Identifier: Apache-2.0
// gemm's C functions.
#include <cstddef>

#include "rung/core/c_api.hpp"
#include "rung/ops/gemm/gemm.h"
#include "rung/ops/gemm/gemm.hpp"

namespace {

static_assert(RUNG_ACTIVATION_TANH == static_cast<int>(rung::Activation::tanh));
static_assert(RUNG_PRECISION_TF32 == static_cast<int>(rung::Precision::tf32));

rung_gemm_options default_options() {
  rung_gemm_options options{};
  options.size = sizeof options;
  options.alpha = 1.0;
  return options;
}

constexpr const char* type_name = "rung_gemm_options";
/// Of version 0.1, the smallest that the structure ever was.
constexpr std::size_t first_size = offsetof(rung_gemm_options, rung) + sizeof(const char*);

}  // namespace

using namespace rung::c_api;

extern "C" {

rung_status rung_gemm_options_init(rung_gemm_options* options, size_t size) {
  return guarded([&] { initialise(options, size, default_options(), type_name); });
}

rung_status rung_gemm(rung_context* context, const rung_tensor* a, const rung_tensor* b,
                      const rung_tensor* c, const rung_gemm_options* options) {
  return guarded([&] {
    require(context, {"context"});
    const rung_gemm_options given = complete(options, default_options(), first_size, type_name);
    rung::GemmOptions checked;
    checked.alpha = given.alpha;
    checked.beta = given.beta;
    checked.transpose_a = given.transpose_a != 0;
    checked.transpose_b = given.transpose_b != 0;
    if (given.bias != nullptr) checked.bias = reference(given.bias, "bias");
    checked.activation = checked_enum(given.activation, rung::Activation::tanh, {"activation"});
    checked.precision = checked_enum(given.precision, rung::Precision::tf32, {"precision"});
    rung::gemm(context->context, reference(a, "a"), reference(b, "b"), reference(c, "c"), checked,
               pick_of(given.rung));
  });
}

}  // extern "C"
