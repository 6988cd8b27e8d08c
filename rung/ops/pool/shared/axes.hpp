// SPDX-License-Identifier: Apache-2.0
// Conversion of the options of pool and pool_backward to checked windows along H and W; the order
// of axes.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string_view>

#include "rung/core/per_axis.hpp"
#include "rung/core/require.hpp"
#include "rung/ops/pool/shared/window.hpp"

namespace rung::pool_axes {

/// Window along one axis, as the caller gives it.
struct Window {
  int kernel;
  int stride;
  int padding;
  int dilation;
  bool ceil_mode;
};

/// Returns the window along axis 0, the height, or 1, the width.
template <class Options>
Window window_of(const Options& o, int axis) {
  return {o.kernel.along(axis), o.stride.along(axis), o.padding.along(axis), o.dilation.along(axis),
          o.ceil_mode};
}

/// Returns whether each window has a tap within the image. A dilation may step over the image.
inline bool no_window_is_empty(const PoolAxis& axis) {
  if (axis.start(axis.out - 1) >= axis.in) return false;
  for (std::int64_t o = 0; o < axis.out && axis.start(o) < 0; ++o) {
    if (axis.taps(o).count() <= 0) return false;
    if (axis.in >= axis.dilation) break;  // then a first tap at 0 or later is within the image
  }
  return true;
}

/// Returns an axis. `where` is "rows" or "columns", for messages.
inline PoolAxis axis_of(std::string_view op, std::string_view where, std::int64_t extent,
                        const Window& window) {
  constexpr std::int64_t max_extent = std::numeric_limits<std::int32_t>::max();
  if (extent < 1 || extent > max_extent) {
    reject(op, fmt::format("{}: extent {}; accepted: 1 to 2^31 - 1", where, extent));
  }
  if (window.kernel < 1 || window.stride < 0 || window.padding < 0 || window.dilation < 1) {
    reject(op, fmt::format("{}: kernel {}, stride {}, padding {}, dilation {}; accepted: from 1, 0 "
                           "(as the kernel), 0 and 1 on",
                           where, window.kernel, window.stride, window.padding, window.dilation));
  }
  PoolAxis axis{.in = extent,
                .kernel = window.kernel,
                .stride = window.stride == 0 ? window.kernel : window.stride,
                .padding = window.padding,
                .dilation = window.dilation};
  const std::int64_t span = (axis.kernel - 1) * axis.dilation + 1;
  if (2 * axis.padding > span) {
    reject(op, fmt::format("{}: padding {} of windows that span {}; accepted: up to half of that",
                           where, axis.padding, span));
  }
  // Ceil mode adds a partial window, unless it would begin beyond the image (PyTorch's rule).
  const std::int64_t room =
      axis.in + 2 * axis.padding + (window.ceil_mode ? axis.stride - 1 : 0) - span;
  if (room < 0) {
    reject(op, fmt::format("{}: windows span {}; accepted: up to {}, the extent with its padding{}",
                           where, span, room + span,
                           window.ceil_mode ? " and, in ceil mode, a stride less one" : ""));
  }
  axis.out = room / axis.stride + 1;
  if (window.ceil_mode && axis.start(axis.out - 1) >= axis.in) --axis.out;
  if (!no_window_is_empty(axis)) {
    reject(op, fmt::format("{}: a window of {} taps, {} apart, is outside of the extent {}; "
                           "accepted: one tap of each within it",
                           where, axis.kernel, axis.dilation, axis.in));
  }
  return axis;
}

/// Returns the extents in the caller's order of axes, from N, C, H, W.
inline Extents given_order(const Extents& nchw, bool channels_last) {
  return channels_last ? Extents{nchw[0], nchw[2], nchw[3], nchw[1]} : nchw;
}
/// Converts a tensor with 4 axes from the caller's order to N, C, H, W.
template <class Ref>
void to_nchw(Ref& tensor, bool channels_last) {
  if (!channels_last) return;
  for (Extents* of : {&tensor.shape, &tensor.strides}) {
    *of = {(*of)[0], (*of)[3], (*of)[1], (*of)[2]};
  }
}

/// Requires that positions within an image fit in 32 bits; rungs rely on it.
inline void require_plane(std::string_view op, const PoolAxis& rows, const PoolAxis& columns) {
  constexpr std::int64_t max_plane = std::numeric_limits<std::int32_t>::max();
  if (rows.in > max_plane / columns.in) {
    reject(op, fmt::format("images are {} x {}; accepted: up to 2^31 - 1 elements each", rows.in,
                           columns.in));
  }
}

/// Converts `image`, x or dx, to N x C x H x W, and sets the windows along its axes.
template <class Args, class Ref>
void bind_axes(std::string_view op, Args& args, std::string_view name, Ref& image) {
  const auto& options = args.options;
  if (image.rank() != 4) {
    reject(op, fmt::format("{} has {}; accepted: 4, {}", name, axis_count(image.rank()),
                           options.channels_last ? "N x H x W x C" : "N x C x H x W"));
  }
  to_nchw(image, options.channels_last);
  require_per_axis(op, "kernel", options.kernel, 2, 1);
  require_per_axis(op, "stride", options.stride, 2, 0);
  require_per_axis(op, "padding", options.padding, 2, 0);
  require_per_axis(op, "dilation", options.dilation, 2, 1);
  args.rows = axis_of(op, "rows", image.shape[2], window_of(options, 0));
  args.columns = axis_of(op, "columns", image.shape[3], window_of(options, 1));
  require_plane(op, args.rows, args.columns);
}

}  // namespace rung::pool_axes
