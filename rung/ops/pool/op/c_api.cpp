// SPDX-License-Identifier: Apache-2.0
// pool's C functions.
#include "rung/c/options.hpp"
#include "rung/ops/pool/pool.h"
#include "rung/ops/pool/pool.hpp"

namespace {

using namespace rung::c_api;
using C = rung_pool_options;
using Cpp = rung::PoolOptions;
using rung::Pooling;

static_assert(same(RUNG_POOLING_MAX, Pooling::max));
static_assert(same(RUNG_POOLING_AVERAGE, Pooling::average));
static_assert(same(RUNG_POOLING_L2, Pooling::l2));
static_assert(same(RUNG_POOLING_WEIGHTED, Pooling::weighted));

constexpr auto table = options_table<C, Cpp>(
    "rung_pool_options", choice("kind", &C::kind, &Cpp::kind, Pooling::weighted),
    per_axis("kernel", &C::kernel, &Cpp::kernel), per_axis("stride", &C::stride, &Cpp::stride),
    per_axis("padding", &C::padding, &Cpp::padding),
    per_axis("dilation", &C::dilation, &Cpp::dilation),
    field("ceil_mode", &C::ceil_mode, &Cpp::ceil_mode),
    field("count_padding", &C::count_padding, &Cpp::count_padding),
    field("channels_last", &C::channels_last, &Cpp::channels_last),
    field("weights", &C::weights, &Cpp::weights), field("bias", &C::bias, &Cpp::bias),
    choice("activation", &C::activation, &Cpp::activation, rung::Activation::tanh),
    field("indices", &C::indices, &Cpp::indices));

}  // namespace

rung_status rung_pool_options_init(rung_pool_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_pool(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                      const rung_pool_options* options) {
  return table.call(rung::pool, context, options, Argument{x, "x"}, Argument{y, "y"});
}

rung_status rung_pooled_extent(int64_t extent, int kernel, int stride, int padding, int dilation,
                               int ceil_mode, int64_t* pooled) {
  return guarded([&] {
    require(pooled, {"pooled"});
    *pooled = rung::pooled_extent(extent, kernel, stride, padding, dilation, ceil_mode != 0);
  });
}

rung_status rung_max_pool(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                          const rung_pool_options* options) {
  return table.call(rung::max_pool, context, options, Argument{x, "x"}, Argument{y, "y"});
}

rung_status rung_average_pool(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                              const rung_pool_options* options) {
  return table.call(rung::average_pool, context, options, Argument{x, "x"}, Argument{y, "y"});
}
