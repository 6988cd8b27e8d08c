// SPDX-License-Identifier: Apache-2.0
// Positions of the taps of a convolution's filter along the axes of an image; for hosts and
// devices.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"

namespace rung {

/// Geometry along one axis. For extents of up to 2^31 - 1 no member function overflows.
struct ConvAxis {
  std::int64_t in = 1;   // extent of x
  std::int64_t out = 1;  // extent of y
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;

  /// Returns the position of x that tap `t` of result `o` reads; -1 in the padding.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t source(std::int64_t o,
                                                                         std::int64_t t) const {
    const std::int64_t at = o * stride - padding + t * dilation;
    return at >= 0 && at < in ? at : -1;
  }
  /// Returns the result whose tap `t` reads position `i` of x; -1 if there is none.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t result(std::int64_t i,
                                                                         std::int64_t t) const {
    const std::int64_t at = i + padding - t * dilation;
    if (at < 0) return -1;
    if (stride == 1) return at < out ? at : -1;
    if (at % stride != 0) return -1;
    return at / stride < out ? at / stride : -1;
  }
  bool operator==(const ConvAxis&) const = default;
};

/// Geometry of a layer. A filter sees the channels of its group.
struct ConvGeometry {
  std::int64_t images = 1;
  std::int64_t channels = 1;  // C, of x
  std::int64_t filters = 1;   // K, channels of y
  std::int64_t groups = 1;
  ConvAxis axis[3];  // depth, height, width; missing axes have extents of 1

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t group_channels() const {
    return channels / groups;
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t group_filters() const {
    return filters / groups;
  }
  /// Returns the number of taps of a filter, per channel.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t taps() const {
    return axis[0].kernel * axis[1].kernel * axis[2].kernel;
  }
  /// Returns the number of elements of x, per image and channel.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t places() const {
    return axis[0].in * axis[1].in * axis[2].in;
  }
  /// Returns the number of elements of y, per image and filter.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t results() const {
    return axis[0].out * axis[1].out * axis[2].out;
  }
  /// Returns whether filters are 1 x 1, with a stride of 1 and no padding: the layer is a matrix
  /// product.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr bool is_pointwise() const {
    bool all = true;
    for (const ConvAxis& one : axis) {
      all = all && one.kernel == 1 && one.stride == 1 && one.padding == 0;
    }
    return all;
  }
};

}  // namespace rung
