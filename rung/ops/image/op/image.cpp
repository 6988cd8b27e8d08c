// SPDX-License-Identifier: Apache-2.0
// The operator object of image, its rung list, and the argument checks of every call.
#include "rung/ops/image/op/image.hpp"

#include <fmt/format.h>

#include <cmath>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Image> rung_list;
const Operator<Image> self;

/// Indices of the axes of a picture in a tensor.
struct Axes {
  int row, column, channel;
};
Axes axes_of(const ConstTensorRef& tensor, bool planar) {
  const int last = tensor.rank() - 1;
  return planar ? Axes{last - 1, last, last - 2} : Axes{last - 2, last - 1, last};
}

Image::Strides strides_of(const ConstTensorRef& tensor, const Axes& axes) {
  return {tensor.strides[axes.row], tensor.strides[axes.column], tensor.strides[axes.channel]};
}

void require_shapes(const Image::Args& args, const Axes& axes) {
  const bool planar = args.options.planar;
  const std::string_view form = planar ? "... x C x H x W" : "... x H x W x C";
  const std::int64_t channels = args.x.shape[axes.channel];
  const bool is_grey = args.filter() == ImageFilter::grey;
  const bool fits = is_grey ? channels == 3 || channels == 4 : channels >= 1 && channels <= 4;
  if (!fits) {
    const bool is_grey_already = is_grey && (channels == 1 || channels == 2);
    reject(Image::name,
           fmt::format("x is {}, {} with C = {}{}; accepted: C = {}{}", to_string(args.x.shape),
                       form, channels, is_grey_already ? ", grey already" : "",
                       is_grey ? "3 or 4 to make grey of" : "1 to 4",
                       is_grey_already ? "; the other filters (box, gaussian, unsharp, sobel) take "
                                         "grey pictures"
                                       : ""));
  }
  Extents wanted = args.x.shape;
  if (is_grey) {
    const bool keeps_alpha =
        channels == 4 && args.y.rank() == args.x.rank() && args.y.shape[axes.channel] == 2;
    wanted[axes.channel] = keeps_alpha ? 2 : 1;
    if (channels == 4 && !keeps_alpha && !(args.y.shape == wanted)) {
      Extents with_alpha = wanted;
      with_alpha[axes.channel] = 2;
      reject(Image::name,
             fmt::format("y is {}; accepted: {}, or {} with alpha kept", to_string(args.y.shape),
                         to_string(wanted), to_string(with_alpha)));
    }
  }
  require_shape(Image::name, args.y, "y", wanted);
}

/// Throws if a filter other than box is given box options.
void require_box_options(const Image::Args& args) {
  const ImageOptions& options = args.options;
  if (options.filter != ImageFilter::box && options.edge != ImageEdge::clamp) {
    reject(Image::name, "edge is zero; accepted: zero for box, clamp for the other filters");
  }
  if (options.truncate && (options.filter != ImageFilter::box || args.x.dtype != DType::u8)) {
    reject(Image::name, "truncate is set; accepted: for box of u8 pictures");
  }
}

void require_numbers(const ImageOptions& options) {
  require_choice(Image::name, options.filter, ImageFilter::sobel, "filter");
  require_choice(Image::name, options.weights, GreyWeights::tenths_by_term, "weights");
  require_choice(Image::name, options.edge, ImageEdge::zero, "edge");
  if (options.radius < 0 || options.radius > Image::max_radius) {
    reject(Image::name,
           fmt::format("radius is {}; accepted: 0 to {}", options.radius, Image::max_radius));
  }
  if (!std::isfinite(options.sigma) || options.sigma < 0) {
    reject(Image::name,
           fmt::format("sigma is {}; accepted: a number above 0, or 0 for one that fits the radius",
                       options.sigma));
  }
  constexpr double max_amount = 64;
  if (!(std::abs(options.amount) <= max_amount)) {
    reject(Image::name, fmt::format("amount is {}; accepted: -64 to 64", options.amount));
  }
}

/// Computes the blur weights by distance from the center, as defined in image.hpp.
void derive_blur(Image::Args& args) {
  args.radius = args.options.radius;
  if (args.filter() == ImageFilter::box) {
    for (int k = 0; k <= args.radius; ++k) args.blur[k] = 1, args.blur_256[k] = 1;
    return;
  }
  const double sigma =
      args.options.sigma > 0 ? args.options.sigma : 0.3 * (args.options.radius - 1) + 0.8;
  double g[Image::max_radius + 1];
  double sum = 0;
  for (int k = args.radius; k >= 0; --k) {
    const double distance = k / sigma;  // its square may overflow to infinity: g is then 0
    g[k] = k == 0 ? 1 : std::exp(-0.5 * distance * distance);
    sum += k == 0 ? g[k] : 2 * g[k];
  }
  double left = 0;
  std::int32_t rest = 256;
  for (int k = args.radius; k >= 0; --k) {
    args.blur[k] = static_cast<float>(g[k] / sum);
    if (k == 0) break;
    const double wanted = 256 * (g[k] / sum) + left;
    args.blur_256[k] = static_cast<std::int32_t>(std::floor(wanted + 0.5));
    left = wanted - args.blur_256[k];
    rest -= 2 * args.blur_256[k];
  }
  args.blur_256[0] = rest;
}

ImageOptions with_filter(ImageOptions options, ImageFilter filter) {
  options.filter = filter;
  return options;
}

}  // namespace

RungList<Image>& Image::rungs() { return rung_list; }

void Image::bind(Args& args) {
  require_numbers(args.options);
  require_dtype(name, args.x, "x", {DType::u8, DType::f32});
  require_dtype(name, args.y, "y", {args.x.dtype});
  require_box_options(args);
  constexpr int picture_axes = 3;
  if (args.x.rank() < picture_axes) {
    reject(name,
           fmt::format("x is {}; accepted: 3 axes or more, the last ones {}",
                       to_string(args.x.shape), args.options.planar ? "C x H x W" : "H x W x C"));
  }
  const Axes axes = axes_of(args.x, args.options.planar);
  require_shapes(args, axes);
  args.rows = args.x.shape[axes.row];
  args.columns = args.x.shape[axes.column];
  args.channels = static_cast<int>(args.x.shape[axes.channel]);
  args.out_channels = static_cast<int>(args.y.shape[axes.channel]);
  args.from = strides_of(args.x, axes);
  args.to = strides_of(args.y, axes);
  args.pictures = collapse<2>(args.x.shape, {args.x.strides, args.y.strides},
                              (AxisSet{1} << (args.x.rank() - picture_axes)) - 1);
  if (args.filter() != ImageFilter::grey && args.filter() != ImageFilter::sobel) derive_blur(args);
  args.amount_256 = static_cast<std::int32_t>(std::lround(256 * args.options.amount));
}

void image(Context& context, const ConstTensorRef& x, const TensorRef& y,
           const ImageOptions& options, Pick pick) {
  call<Image>(context, {.x = x, .y = y, .options = options}, pick);
}

void to_grey(Context& context, const ConstTensorRef& x, const TensorRef& y,
             const ImageOptions& options, Pick pick) {
  image(context, x, y, with_filter(options, ImageFilter::grey), pick);
}
void box_blur(Context& context, const ConstTensorRef& x, const TensorRef& y,
              const ImageOptions& options, Pick pick) {
  image(context, x, y, with_filter(options, ImageFilter::box), pick);
}
void gaussian_blur(Context& context, const ConstTensorRef& x, const TensorRef& y,
                   const ImageOptions& options, Pick pick) {
  image(context, x, y, with_filter(options, ImageFilter::gaussian), pick);
}
void unsharp_mask(Context& context, const ConstTensorRef& x, const TensorRef& y,
                  const ImageOptions& options, Pick pick) {
  image(context, x, y, with_filter(options, ImageFilter::unsharp), pick);
}
void sobel(Context& context, const ConstTensorRef& x, const TensorRef& y,
           const ImageOptions& options, Pick pick) {
  image(context, x, y, with_filter(options, ImageFilter::sobel), pick);
}

}  // namespace rung
