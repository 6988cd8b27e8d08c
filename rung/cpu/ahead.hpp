// SPDX-License-Identifier: Apache-2.0
//
// Prefetch addresses within the next rows, for software pipelines over rows.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/cpu/prefetch.hpp"

namespace rung::cpu {

/// Two consecutive rows of `length` elements of T. Position i is element `from` + i of the first
/// row or, past its end, element `from` + i - `length` of the second row.
template <class T>
struct PrefetchedRows {
  const T* first;
  const T* second;
  std::int64_t from;
  std::int64_t length;

  /// Returns the address of position i. Always inlined, as prefetch_line().
  [[nodiscard]] RUNG_ALWAYS_INLINE const T* place(std::int64_t i) const noexcept {
    return i + from < length ? first + i + from : second + (i + from - length);
  }
  /// Prefetches positions [i, length): the remainder of an unrolled loop.
  RUNG_ALWAYS_INLINE void prefetch_from(std::int64_t i, bool into_l2) const noexcept {
    constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    for (; i < length; i += line) prefetch_line(place(i), into_l2);
  }
};

/// Returns the prefetch distance in elements of T: `bytes`, and with `apart` up to a page more, so
/// that the page offset of prefetched lines is half a page from that of the lines being written. On
/// Zen 4 a load at the page offset of a non-temporal store waits for it (softmax of 65536x256 on a
/// 2-core vCPU, one thread: 20 GB/s at the same offset, 28 to 31 at three others; norm of
/// 16384x1024: 30 at the same offset, 38 at others). `read` and `written` are the current
/// addresses, which advance at the same rate.
template <class T>
[[nodiscard]] std::int64_t elements_ahead(std::int64_t bytes, const T* read, const void* written,
                                          bool apart) noexcept {
  constexpr std::uintptr_t page = 4096;
  constexpr std::uintptr_t distance = page / 2;  // equally far from past and future stores
  if (apart) {
    const auto now = reinterpret_cast<std::uintptr_t>(read) + static_cast<std::uintptr_t>(bytes) -
                     reinterpret_cast<std::uintptr_t>(written);
    bytes += static_cast<std::int64_t>((distance - now) % page);
  }
  return bytes / static_cast<std::int64_t>(sizeof(T));
}

}  // namespace rung::cpu
