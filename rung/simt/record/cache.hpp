// SPDX-License-Identifier: Apache-2.0
// A cache of 128-byte lines in sectors of 32 bytes, LRU within each set. Internal to simt/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rung::simt::record {

inline constexpr std::uint64_t line_bytes = 128;
inline constexpr std::uint64_t sectors_per_line = 4;

class Cache {
 public:
  /// A line takes the set that a hash of its number names: hardware does so, too, lest a stride of
  /// a power of two use few sets. `ways` 0: nothing is ever kept.
  Cache(std::size_t sets, std::size_t ways);

  struct Line {
    std::uint64_t number = 0;  // the address over 128
    std::uint32_t newer = 0, older = 0;
    std::uint8_t valid = 0, dirty = 0;  // a bit per sector
  };
  /// The line, now the newest of its set; null: it is not there.
  Line* find(std::uint64_t number);
  struct Fresh {
    Line* line = nullptr;  // null: there are no ways
    bool evicts = false;
    std::uint8_t dirty = 0;  // of the line that went
  };
  /// Makes room for a line that is not there; it has no sector yet.
  Fresh add(std::uint64_t number);
  /// Sectors that are dirty.
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
  std::vector<Line> lines_;           // from 1; as many as were ever needed
  std::vector<std::uint32_t> table_;  // a hash table of indices, open addressing; 0: free
};

}  // namespace rung::simt::record
