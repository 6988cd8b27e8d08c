// SPDX-License-Identifier: Apache-2.0
// conv's C functions.
#include "rung/c/options.hpp"
#include "rung/ops/conv/conv.h"
#include "rung/ops/conv/conv.hpp"

namespace {

using namespace rung::c_api;
using C = rung_conv_options;
using Cpp = rung::ConvOptions;

constexpr auto table = options_table<C, Cpp>(
    "rung_conv_options", per_axis("stride", &C::stride, &Cpp::stride),
    per_axis("padding", &C::padding, &Cpp::padding),
    per_axis("dilation", &C::dilation, &Cpp::dilation), field("groups", &C::groups, &Cpp::groups),
    field("channels_last", &C::channels_last, &Cpp::channels_last),
    field("winograd", &C::winograd, &Cpp::winograd), field("bias", &C::bias, &Cpp::bias),
    choice("activation", &C::activation, &Cpp::activation, rung::Activation::tanh));

}  // namespace

rung_status rung_conv_options_init(rung_conv_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_conv(rung_context* context, const rung_tensor* x, const rung_tensor* w,
                      const rung_tensor* y, const rung_conv_options* options) {
  return table.call(rung::conv, context, options, Argument{x, "x"}, Argument{w, "w"},
                    Argument{y, "y"});
}

rung_status rung_convolved_extent(int64_t extent, int64_t kernel, int stride, int padding,
                                  int dilation, int64_t* convolved) {
  return guarded([&] {
    require(convolved, {"convolved"});
    *convolved = rung::convolved_extent(extent, kernel, stride, padding, dilation);
  });
}
