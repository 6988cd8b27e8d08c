// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter's C functions.
#include "rung/ops/conv_backward_filter/conv_backward_filter.h"
#include "rung/ops/conv_backward_filter/conv_backward_filter.hpp"

#include "rung/c/options.hpp"

namespace {

using namespace rung::c_api;
using C = rung_conv_backward_filter_options;
using Cpp = rung::ConvBackwardFilterOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_conv_backward_filter_options", per_axis("stride", &C::stride, &Cpp::stride),
    per_axis("padding", &C::padding, &Cpp::padding),
    per_axis("dilation", &C::dilation, &Cpp::dilation), field("groups", &C::groups, &Cpp::groups),
    field("channels_last", &C::channels_last, &Cpp::channels_last));

}  // namespace

rung_status rung_conv_backward_filter_options_init(rung_conv_backward_filter_options* options,
                                                   size_t size) {
  return table.init(options, size);
}

rung_status rung_conv_backward_filter(rung_context* context, const rung_tensor* x,
                                      const rung_tensor* dy, const rung_tensor* dw,
                                      const rung_conv_backward_filter_options* options) {
  return table.call(rung::conv_backward_filter, context, options, Argument{x, "x"},
                    Argument{dy, "dy"}, Argument{dw, "dw"});
}
