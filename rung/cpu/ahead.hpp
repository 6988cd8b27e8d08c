// SPDX-License-Identifier: Apache-2.0
//
// Lines of the next rows to prefetch while other rows are read and written in a software
// pipeline.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/cpu/prefetch.hpp"

namespace rung::cpu {

/// Two rows that follow each other, each `length` elements of T: the places that are asked for
/// begin at element `from` of the first.
template <class T>
struct PrefetchedRows {
  const T* first;
  const T* second;
  std::int64_t from;
  std::int64_t length;

  /// Always inlined: as ask_for_line.
  [[nodiscard]] RUNG_ALWAYS_INLINE const T* place(std::int64_t i) const noexcept {
    return i + from < length ? first + i + from : second + (i + from - length);
  }
  /// Asks for the places from that of element i on to the end: what a loop over whole turns leaves.
  RUNG_ALWAYS_INLINE void ask_from(std::int64_t i, bool into_l2) const noexcept {
    constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
    for (; i < length; i += line) ask_for_line(place(i), into_l2);
  }
};

/// Returns the prefetch distance in elements of T: `bytes`, and with `apart` up to a page more, so
/// that prefetched lines are half a page from the page offset that is being written. On Zen 4 a
/// load at the same page offset waits for the non-temporal store (softmax of 65536x256 on a 2-core
/// vCPU, one thread: 20 GB/s at the same offset, 28 to 31 at three others; norm of 16384x1024 30
/// and 38). `read` and `written` are the current positions, which advance by the same bytes.
template <class T>
[[nodiscard]] std::int64_t elements_ahead(std::int64_t bytes, const T* read, const void* written,
                                          bool apart) noexcept {
  constexpr std::uintptr_t page = 4096;
  constexpr std::uintptr_t distance = page / 2;  // as far from what comes as from what was written
  if (apart) {
    const auto now = reinterpret_cast<std::uintptr_t>(read) + static_cast<std::uintptr_t>(bytes) -
                     reinterpret_cast<std::uintptr_t>(written);
    bytes += static_cast<std::int64_t>((distance - now) % page);
  }
  return bytes / static_cast<std::int64_t>(sizeof(T));
}

}  // namespace rung::cpu
