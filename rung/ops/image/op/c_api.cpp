// SPDX-License-Identifier: Apache-2.0
// C functions of image.
#include "rung/c/options.hpp"
#include "rung/ops/image/image.h"
#include "rung/ops/image/image.hpp"

namespace {

using namespace rung::c_api;
using C = rung_image_options;
using Cpp = rung::ImageOptions;
using rung::GreyWeights;
using rung::ImageEdge;
using rung::ImageFilter;

static_assert(same(RUNG_IMAGE_GREY, ImageFilter::grey) && same(RUNG_IMAGE_BOX, ImageFilter::box));
static_assert(same(RUNG_IMAGE_GAUSSIAN, ImageFilter::gaussian));
static_assert(same(RUNG_IMAGE_UNSHARP, ImageFilter::unsharp));
static_assert(same(RUNG_IMAGE_SOBEL, ImageFilter::sobel));
static_assert(same(RUNG_GREY_TENTHS, GreyWeights::tenths));
static_assert(same(RUNG_GREY_BT601, GreyWeights::bt601));
static_assert(same(RUNG_GREY_BT709, GreyWeights::bt709));
static_assert(same(RUNG_GREY_TENTHS_BY_TERM, GreyWeights::tenths_by_term));
static_assert(same(RUNG_IMAGE_EDGE_CLAMP, ImageEdge::clamp));
static_assert(same(RUNG_IMAGE_EDGE_ZERO, ImageEdge::zero));

constexpr auto table = options_table<C, Cpp>(
    "rung_image_options", choice("filter", &C::filter, &Cpp::filter, ImageFilter::sobel),
    choice("weights", &C::weights, &Cpp::weights, GreyWeights::tenths_by_term),
    field("radius", &C::radius, &Cpp::radius), field("sigma", &C::sigma, &Cpp::sigma),
    field("amount", &C::amount, &Cpp::amount), field("planar", &C::planar, &Cpp::planar),
    choice("edge", &C::edge, &Cpp::edge, ImageEdge::zero),
    field("truncate", &C::truncate, &Cpp::truncate));

}  // namespace

rung_status rung_image_options_init(rung_image_options* options, size_t size) {
  return table.init(options, size);
}

rung_status rung_image(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                       const rung_image_options* options) {
  return table.call(rung::image, context, options, Argument{x, "x"}, Argument{y, "y"});
}

rung_status rung_to_grey(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                         const rung_image_options* options) {
  return table.call(rung::to_grey, context, options, Argument{x, "x"}, Argument{y, "y"});
}

rung_status rung_box_blur(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                          const rung_image_options* options) {
  return table.call(rung::box_blur, context, options, Argument{x, "x"}, Argument{y, "y"});
}

rung_status rung_gaussian_blur(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                               const rung_image_options* options) {
  return table.call(rung::gaussian_blur, context, options, Argument{x, "x"}, Argument{y, "y"});
}

rung_status rung_unsharp_mask(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                              const rung_image_options* options) {
  return table.call(rung::unsharp_mask, context, options, Argument{x, "x"}, Argument{y, "y"});
}

rung_status rung_sobel(rung_context* context, const rung_tensor* x, const rung_tensor* y,
                       const rung_image_options* options) {
  return table.call(rung::sobel, context, options, Argument{x, "x"}, Argument{y, "y"});
}
