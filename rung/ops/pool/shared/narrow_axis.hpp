// SPDX-License-Identifier: Apache-2.0
// PoolAxis in 32 bits, for kernels in which index arithmetic before the first load dominates short
// windows.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/ops/pool/shared/window.hpp"

namespace rung {

struct NarrowTaps {
  int begin, end;
};

struct NarrowAxis {
  int in, kernel, stride, padding, dilation;

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr int start(int o) const {
    return o * stride - padding;
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr NarrowTaps taps(int o) const {
    const int first = start(o);
    return {first >= 0 ? 0 : taps_in(-first), smaller(kernel, taps_in(in - first))};
  }
  /// Returns the number of taps that an average counts.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr int counted(int o, bool padded) const {
    if (padded) return smaller(kernel, taps_in(in + padding - start(o)));
    const NarrowTaps within = taps(o);
    return within.end - within.begin;
  }
  /// Returns the span of a window.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr int span() const {
    return (kernel - 1) * dilation + 1;
  }

  static NarrowAxis of(const PoolAxis& axis) {
    return {.in = static_cast<int>(axis.in),
            .kernel = static_cast<int>(axis.kernel),
            .stride = static_cast<int>(axis.stride),
            .padding = static_cast<int>(axis.padding),
            .dilation = static_cast<int>(axis.dilation)};
  }

 private:
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr int taps_in(int places) const {
    return dilation == 1 ? places : (places + dilation - 1) / dilation;
  }
};

/// Returns supported if every position along the axes, and every thread's index, fits in 32 bits.
inline Support supports_narrow(const PoolAxis& rows, const PoolAxis& columns,
                               std::int64_t numbers) {
  constexpr std::int64_t max_place = std::int64_t{1} << 29;
  constexpr std::int64_t max_number = 0x7fffffff;
  for (const PoolAxis* axis : {&rows, &columns}) {
    const std::int64_t span = (axis->kernel - 1) * axis->dilation + 1;
    if (axis->in > max_place || axis->stride > max_place || span > max_place) {
      return unsupported("images, windows and strides of up to 2^29");
    }
  }
  return numbers <= max_number ? supported : unsupported("2^31 outputs and more");
}

}  // namespace rung
