// SPDX-License-Identifier: Apache-2.0
// Positions of pool's windows along one axis of an image; for hosts and devices.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/export.hpp"
#include "rung/core/integer.hpp"

namespace rung {

/// Taps of a window that are within the image: [begin, end), counted from the window's first tap.
struct PoolTaps {
  std::int64_t begin;
  std::int64_t end;
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t count() const {
    return end - begin;
  }
};

/// Windows along one axis. For extents of up to 2^31 - 1 no member function overflows.
struct PoolAxis {
  std::int64_t in = 1;   // extent of x
  std::int64_t out = 1;  // number of windows: extent of y
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;

  /// Returns the position of the first tap of window `o`; negative in the padding.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t start(std::int64_t o) const {
    return o * stride - padding;
  }
  /// Returns the taps of window `o` within the image; bind() ensures that there is at least one.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr PoolTaps taps(std::int64_t o) const {
    const std::int64_t first = start(o);
    return {first >= 0 ? 0 : taps_in(-first), smaller(kernel, taps_in(in - first))};
  }
  /// Returns the number of taps of window `o` within the padded image. Taps beyond it, which ceil
  /// mode admits, are the last ones.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t padded_taps(
      std::int64_t o) const {
    return smaller(kernel, taps_in(in + padding - start(o)));
  }
  /// Returns whether all taps of window `o` are within the image or, with `padded`, within the
  /// padded image.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr bool has_all_taps(std::int64_t o,
                                                                       bool padded) const {
    const std::int64_t first = start(o);
    const std::int64_t last = first + (kernel - 1) * dilation;
    return padded ? last < in + padding : first >= 0 && last < in;
  }
  /// Returns the windows that span position `at` of the image: [begin, end). With a dilation, some
  /// of them may have no tap there.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr PoolTaps windows_over(std::int64_t at) const {
    const std::int64_t place = at + padding;
    const std::int64_t span = (kernel - 1) * dilation + 1;
    return {place < span ? 0 : (place - span) / stride + 1, smaller(out, place / stride + 1)};
  }
  /// Returns the tap of window `o` at position `at`, or -1 if there is none.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t tap_at(std::int64_t o,
                                                                         std::int64_t at) const {
    const std::int64_t places = at - start(o);
    if (places < 0 || places > (kernel - 1) * dilation) return -1;
    if (dilation == 1) return places;
    return places % dilation == 0 ? places / dilation : -1;
  }

 private:
  /// Returns the number of taps, `dilation` apart, that begin within `places` positions.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t taps_in(
      std::int64_t places) const {
    return dilation == 1 ? places : ceil_div(places, dilation);
  }
};

}  // namespace rung
