// SPDX-License-Identifier: Apache-2.0
// pool_backward's C functions.
#include "rung/c/options.hpp"
#include "rung/ops/pool_backward/pool_backward.h"
#include "rung/ops/pool_backward/pool_backward.hpp"

namespace {

using namespace rung::c_api;
using C = rung_pool_backward_options;
using Cpp = rung::PoolBackwardOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_pool_backward_options", choice("kind", &C::kind, &Cpp::kind, rung::Pooling::weighted),
    per_axis("kernel", &C::kernel, &Cpp::kernel), per_axis("stride", &C::stride, &Cpp::stride),
    per_axis("padding", &C::padding, &Cpp::padding),
    per_axis("dilation", &C::dilation, &Cpp::dilation),
    field("ceil_mode", &C::ceil_mode, &Cpp::ceil_mode),
    field("count_padding", &C::count_padding, &Cpp::count_padding),
    field("channels_last", &C::channels_last, &Cpp::channels_last),
    field("indices", &C::indices, &Cpp::indices), field("x", &C::x, &Cpp::x),
    field("y", &C::y, &Cpp::y), field("weights", &C::weights, &Cpp::weights));

}  // namespace

rung_status rung_pool_backward_options_init(rung_pool_backward_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_pool_backward(rung_context* context, const rung_tensor* dy, const rung_tensor* dx,
                               const rung_pool_backward_options* options) {
  return table.call(rung::pool_backward, context, options, Argument{dy, "dy"}, Argument{dx, "dx"});
}

rung_status rung_max_pool_backward(rung_context* context, const rung_tensor* dy,
                                   const rung_tensor* dx,
                                   const rung_pool_backward_options* options) {
  return table.call(rung::max_pool_backward, context, options, Argument{dy, "dy"},
                    Argument{dx, "dx"});
}

rung_status rung_average_pool_backward(rung_context* context, const rung_tensor* dy,
                                       const rung_tensor* dx,
                                       const rung_pool_backward_options* options) {
  return table.call(rung::average_pool_backward, context, options, Argument{dy, "dy"},
                    Argument{dx, "dx"});
}
