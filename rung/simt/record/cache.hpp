// SPDX-License-Identifier: Apache-2.0
// An LRU set-associative cache of 128-byte lines in sectors of 32 bytes. Internal to simt/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rung::simt::record {

inline constexpr std::uint64_t line_bytes = 128;
inline constexpr std::uint64_t sectors_per_line = 4;

class Cache {
 public:
  /// Constructs an empty cache. A hash of the line number selects the set, as in hardware, so that
  /// power-of-two strides spread over all sets. `ways` 0: nothing is cached.
  Cache(std::size_t sets, std::size_t ways);

  struct Line {
    std::uint64_t number = 0;  // the address divided by 128
    std::uint32_t newer = 0, older = 0;
    std::uint8_t valid = 0, dirty = 0;  // one bit per sector
  };
  /// Returns the line and makes it the most recently used line of its set; null on a miss.
  Line* find(std::uint64_t number);
  struct Fresh {
    Line* line = nullptr;  // null if the cache has no ways
    bool evicts = false;
    std::uint8_t dirty = 0;  // dirty sectors of the evicted line
  };
  /// Inserts a line that is not cached, with no valid sectors; evicts the LRU line if the set is
  /// full.
  Fresh add(std::uint64_t number);
  /// Returns the number of dirty sectors.
  [[nodiscard]] std::uint64_t dirty() const;

 private:
  struct Set {
    std::uint32_t newest = 0, oldest = 0, lines = 0;
  };
  [[nodiscard]] static std::uint64_t mix(std::uint64_t number);
  [[nodiscard]] std::size_t slot_of(std::uint64_t number) const;
  void forget(std::uint64_t number);
  void grow();
  void take_out(Set& set, std::uint32_t index);
  void put_first(Set& set, std::uint32_t index);
  Set& set_of(std::uint64_t number) { return sets_[(mix(number) >> 20) % sets_.size()]; }

  std::size_t ways_;
  std::vector<Set> sets_;
  std::vector<Line> lines_;           // 1-based; grown on demand
  std::vector<std::uint32_t> table_;  // hash table of indices with open addressing; 0: free
};

}  // namespace rung::simt::record
