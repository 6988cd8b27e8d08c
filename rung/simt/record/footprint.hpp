// SPDX-License-Identifier: Apache-2.0
// Bytes of global and constant memory that a launch accesses, for launchers that order launches and
// copies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rung/core/export.hpp"

namespace rung::simt::record {

struct Request;

struct ByteRange {
  std::uintptr_t begin = 0, end = 0;
};
/// Ascending, disjoint ranges that are not adjacent.
using ByteRanges = std::vector<ByteRange>;

/// Kind of access. `atomic` includes volatile accesses: two such accesses do not race.
enum class Touch : std::uint8_t { read, write, atomic };

class Footprint {
 public:
  void note(Request& request);
  RUNG_API void add(Touch touch, std::uintptr_t address, std::size_t bytes);
  /// Merges the footprint of another worker into this one.
  void add(const Footprint& other);
  void clear();
  [[nodiscard]] bool empty() const { return pages_.empty(); }
  [[nodiscard]] RUNG_API ByteRanges ranges(Touch touch) const;

 private:
  static constexpr std::size_t page_bytes = 4096;
  struct Page {
    std::array<std::uint64_t, page_bytes / 64> bits[3] = {};  // one bit per byte, for each kind
  };
  Page& page_of(std::uintptr_t number);

  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::uintptr_t last_number_ = ~std::uintptr_t{0};
  Page* last_ = nullptr;
};

}  // namespace rung::simt::record
