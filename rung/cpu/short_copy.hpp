// SPDX-License-Identifier: Apache-2.0
// Inline copies of up to one cache line, of any length and alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rung/core/export.hpp"

namespace rung::cpu {

/// Size of a cache line.
inline constexpr std::int64_t line_bytes = 64;

/// Returns the offset of an address in its cache line.
RUNG_ALWAYS_INLINE inline std::int64_t line_offset(const std::byte* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) % line_bytes);
}

// False positive of g++ 12: it assumes that the second piece begins before the array.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
/// Copies up to line_bytes bytes. Two overlapping pieces cover any length between a power of two
/// and the next.
RUNG_ALWAYS_INLINE inline void copy_short(const std::byte* from, std::byte* to,
                                          std::int64_t count) {
  const auto both = [&]<int size>() RUNG_ALWAYS_INLINE {
    std::byte first[size];
    std::byte last[size];
    std::memcpy(first, from, size);
    std::memcpy(last, from + count - size, size);
    std::memcpy(to, first, size);
    std::memcpy(to + count - size, last, size);
  };
  if (count >= 32) return both.template operator()<32>();
  if (count >= 16) return both.template operator()<16>();
  if (count >= 8) return both.template operator()<8>();
  if (count >= 4) return both.template operator()<4>();
  if (count >= 2) return both.template operator()<2>();
  if (count == 1) *to = *from;
}
#pragma GCC diagnostic pop

}  // namespace rung::cpu
