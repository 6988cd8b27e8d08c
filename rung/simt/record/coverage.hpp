// SPDX-License-Identifier: Apache-2.0
// Sets of the sectors of an allocation that a launch reads and writes. Internal to simt/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/simt/record/shadow.hpp"

namespace rung::simt::record {

inline constexpr int sector_shift = 5;  // 32 bytes

/// Bit set of sectors, shared by OS threads: exactly one add() reports each sector as new.
class SectorSet {
 public:
  /// Constructs an empty set of `sectors` sectors.
  explicit SectorSet(std::size_t sectors) : bits_((sectors + 63) / 64 * 8) {}
  /// Adds sectors `first` to `last`. Returns the number of new sectors.
  std::uint32_t add(std::uint64_t first, std::uint64_t last) {
    // Common case: few sectors, which are already present.
    if ((first ^ last) < 64) {
      const std::uint64_t mask = ~std::uint64_t{0} >> (63 - (last - first)) << first % 64;
      if ((__atomic_load_n(&word_of(first), __ATOMIC_RELAXED) & mask) == mask) return 0;
    }
    return add_new(first, last);
  }

 private:
  [[nodiscard]] std::uint64_t& word_of(std::uint64_t sector) const {
    return bits_.as<std::uint64_t>()[sector / 64];
  }
  std::uint32_t add_new(std::uint64_t first, std::uint64_t last) {
    std::uint32_t fresh = 0;
    while (first <= last) {
      const std::uint64_t begin = first % 64;
      const std::uint64_t end = last - first < 64 - begin ? begin + (last - first) : 63;
      const std::uint64_t mask = ~std::uint64_t{0} >> (63 - end) & ~std::uint64_t{0} << begin;
      const std::uint64_t before = __atomic_fetch_or(&word_of(first), mask, __ATOMIC_RELAXED);
      fresh += static_cast<std::uint32_t>(__builtin_popcountll(mask & ~before));
      first += end - begin + 1;
    }
    return fresh;
  }

  LazyMemory bits_;
};

struct Coverage {
  /// Constructs the sets of an allocation. Index 0 is the sector of its first byte.
  Coverage(const void* begin, std::size_t bytes)
      : first_sector(reinterpret_cast<std::uintptr_t>(begin) >> sector_shift),
        loaded((bytes >> sector_shift) + 2),
        stored((bytes >> sector_shift) + 2) {}
  std::uint64_t first_sector;
  SectorSet loaded, stored;
};

}  // namespace rung::simt::record
