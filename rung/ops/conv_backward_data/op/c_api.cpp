// SPDX-License-Identifier: Apache-2.0
// conv_backward_data's C functions.
#include "rung/ops/conv_backward_data/conv_backward_data.h"
#include "rung/ops/conv_backward_data/conv_backward_data.hpp"

#include "rung/c/options.hpp"

namespace {

using namespace rung::c_api;
using C = rung_conv_backward_data_options;
using Cpp = rung::ConvBackwardDataOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_conv_backward_data_options", per_axis("stride", &C::stride, &Cpp::stride),
    per_axis("padding", &C::padding, &Cpp::padding),
    per_axis("dilation", &C::dilation, &Cpp::dilation), field("groups", &C::groups, &Cpp::groups),
    field("channels_last", &C::channels_last, &Cpp::channels_last));

}  // namespace

rung_status rung_conv_backward_data_options_init(rung_conv_backward_data_options* options,
                                                 size_t size) {
  return table.init(options, size);
}

rung_status rung_conv_backward_data(rung_context* context, const rung_tensor* dy,
                                    const rung_tensor* w, const rung_tensor* dx,
                                    const rung_conv_backward_data_options* options) {
  return table.call(rung::conv_backward_data, context, options, Argument{dy, "dy"},
                    Argument{w, "w"}, Argument{dx, "dx"});
}
