// SPDX-License-Identifier: Apache-2.0
// Conversion of the tensors and options of conv, conv_backward_data and conv_backward_filter to a
// checked geometry; the order of axes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "rung/core/per_axis.hpp"
#include "rung/core/require.hpp"
#include "rung/ops/conv/shared/window.hpp"

namespace rung::conv_axes {

inline constexpr std::string_view axis_names[] = {"depth", "height", "width"};
inline constexpr std::int64_t max_extent = std::numeric_limits<std::int32_t>::max();

/// Window along one axis, as the caller gives it.
struct Window {
  int stride;
  int padding;
  int dilation;
};

/// Returns the window along axis `axis` of depth, height and width; an image has the last `axes` of
/// these three.
template <class Options>
Window window_of(const Options& o, int axis, int axes) {
  const int own = axis - (3 - axes);
  if (own < 0) return {1, 0, 1};
  return {o.stride.along(own), o.padding.along(own), o.dilation.along(own)};
}

inline ConvAxis axis_of(std::string_view op, std::string_view where, std::int64_t extent,
                        std::int64_t kernel, const Window& window) {
  if (extent < 1 || extent > max_extent) {
    reject(op, fmt::format("{}: extent {}; accepted: 1 to 2^31 - 1", where, extent));
  }
  if (kernel < 1 || kernel > max_extent) {
    reject(op,
           fmt::format("{}: the filter's extent is {}; accepted: 1 to 2^31 - 1", where, kernel));
  }
  if (window.stride < 1 || window.padding < 0 || window.dilation < 1) {
    reject(op, fmt::format("{}: stride {}, padding {}, dilation {}; accepted: from 1, 0 and 1 on",
                           where, window.stride, window.padding, window.dilation));
  }
  ConvAxis axis{.in = extent,
                .kernel = kernel,
                .stride = window.stride,
                .padding = window.padding,
                .dilation = window.dilation};
  const std::int64_t span = (axis.kernel - 1) * axis.dilation + 1;
  const std::int64_t room = axis.in + 2 * axis.padding - span;
  if (room < 0) {
    reject(op, fmt::format("{}: the filter spans {}; accepted: up to {}, the extent with its "
                           "padding",
                           where, span, room + span));
  }
  axis.out = room / axis.stride + 1;
  if (axis.out > max_extent) {
    reject(op,
           fmt::format("{}: extent {} of the result; accepted: up to 2^31 - 1", where, axis.out));
  }
  return axis;
}

/// Returns the extents of a tensor in the caller's order of axes, from the order N, C, image axes.
inline Extents given_order(const Extents& channels_first, bool channels_last) {
  if (!channels_last) return channels_first;
  Extents moved = channels_first;
  for (int axis = 1; axis + 1 < moved.rank; ++axis) moved[axis] = channels_first[axis + 1];
  moved[moved.rank - 1] = channels_first[1];
  return moved;
}

/// Returns the inverse of given_order().
inline Extents channels_first(const Extents& given, bool channels_last) {
  if (!channels_last) return given;
  Extents moved = given;
  for (int axis = 2; axis < moved.rank; ++axis) moved[axis] = given[axis - 1];
  moved[1] = given[given.rank - 1];
  return moved;
}

/// Converts a tensor to five axes, channels first: axes that the image lacks have extents of 1.
template <class Ref>
void to_five(Ref& tensor, bool channels_last) {
  const int rank = tensor.rank();
  const Extents shape = tensor.shape;
  const Extents strides = tensor.strides;
  tensor.shape = {shape[0], shape[channels_last ? rank - 1 : 1], 1, 1, 1};
  tensor.strides = {strides[0], strides[channels_last ? rank - 1 : 1], 0, 0, 0};
  for (int axis = 2; axis < rank; ++axis) {
    const int from = channels_last ? axis - 1 : axis;
    tensor.shape[5 - rank + axis] = shape[from];
    tensor.strides[5 - rank + axis] = strides[from];
  }
}

/// Checks that the counts that rungs form (taps, terms, positions and results) fit in 62 bits, even
/// if a tensor is empty.
inline void require_countable(std::string_view op, const ConvGeometry& g) {
  constexpr double max_count = 0x1p62;
  double places = 1;
  double results = 1;
  double taps = 1;
  for (const ConvAxis& axis : g.axis) {
    places *= static_cast<double>(axis.in);
    results *= static_cast<double>(axis.out);
    taps *= static_cast<double>(axis.kernel);
  }
  const auto images = std::max(1.0, static_cast<double>(g.images));
  const auto channels = std::max(1.0, static_cast<double>(g.channels));
  const auto filters = std::max(1.0, static_cast<double>(g.filters));
  if (images * channels * places < max_count && images * filters * results < max_count &&
      filters * channels * taps < max_count && channels * taps * results < max_count) {
    return;
  }
  reject(op, fmt::format("images of {:.3g} places, results of {:.3g} and filters of {:.3g} taps, "
                         "times channels and filters; accepted: up to 2^62 of each",
                         places, results, taps));
}

/// Tensor and its name in error messages.
template <class Ref>
struct Named {
  Ref& tensor;
  std::string_view name;
};

/// Checks x, w and y of a layer, or their gradients, and converts them to five axes.
template <class X, class W, class Y, class Options>
ConvGeometry bind_layer(std::string_view op, Named<X> x, Named<W> w, Named<Y> y,
                        const Options& options) {
  const bool last = options.channels_last;
  require_dtype(op, x.tensor, x.name, {DType::f32, DType::f64, DType::f16, DType::bf16});
  require_dtype(op, w.tensor, w.name, {x.tensor.dtype});
  require_dtype(op, y.tensor, y.name, {x.tensor.dtype});
  const int rank = x.tensor.rank();
  if (rank < 3 || rank > 5) {
    reject(op,
           fmt::format("{} has {}; accepted: 3 to 5, {}", x.name, axis_count(rank),
                       last ? "N x W x C to N x D x H x W x C" : "N x C x W to N x C x D x H x W"));
  }
  if (w.tensor.rank() != rank) {
    reject(op, fmt::format("{} has {}; accepted: {}, as {}", w.name, axis_count(w.tensor.rank()),
                           rank, x.name));
  }
  if (options.groups < 1) {
    reject(op, fmt::format("groups is {}; accepted: from 1 on", options.groups));
  }
  ConstTensorRef image = x.tensor;
  ConstTensorRef filter = w.tensor;
  to_five(image, last);
  to_five(filter, last);
  ConvGeometry geometry{.images = image.shape[0],
                        .channels = image.shape[1],
                        .filters = filter.shape[0],
                        .groups = options.groups,
                        .axis = {}};
  if (geometry.channels % geometry.groups != 0 || geometry.filters % geometry.groups != 0) {
    reject(op,
           fmt::format("groups is {}, of {} channels and {} filters; accepted: divisors of both",
                       geometry.groups, geometry.channels, geometry.filters));
  }
  const int absent = 5 - rank;
  require_per_axis(op, "stride", options.stride, rank - 2, 1);
  require_per_axis(op, "padding", options.padding, rank - 2, 0);
  require_per_axis(op, "dilation", options.dilation, rank - 2, 1);
  Extents of_w{geometry.filters, geometry.group_channels()};
  of_w.rank = rank;
  Extents of_y{geometry.images, geometry.filters};
  of_y.rank = rank;
  for (int axis = 2; axis < rank; ++axis) of_w[axis] = filter.shape[absent + axis];
  require_shape(op, w.tensor, w.name, given_order(of_w, last));
  for (int axis = absent; axis < 3; ++axis) {
    geometry.axis[axis] = axis_of(op, axis_names[axis], image.shape[2 + axis],
                                  filter.shape[2 + axis], window_of(options, axis, rank - 2));
    of_y[2 + axis - absent] = geometry.axis[axis].out;
  }
  require_shape(op, y.tensor, y.name, given_order(of_y, last));
  require_countable(op, geometry);
  to_five(x.tensor, last);
  to_five(w.tensor, last);
  to_five(y.tensor, last);
  return geometry;
}

}  // namespace rung::conv_axes
