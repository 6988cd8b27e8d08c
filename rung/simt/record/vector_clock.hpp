// SPDX-License-Identifier: Apache-2.0
// Which accesses happened before what comes now: logical clocks, one a warp. Internal to simt/.
//
// A warp's clock advances whenever it lets others know what it has done: at a barrier, a
// __syncwarp, a flag written behind a fence. A warp knows, for each warp of its block, up to which
// clock it has acquired; of other blocks it knows what came with flags and barriers of clusters.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rung/simt/limits.hpp"

namespace rung::simt::record {

/// Numbers of bulk copies that are known to have landed, from 1: all up to one, and some behind. Of
/// those too far before the latest it is taken for known that they have.
class CopySet {
 public:
  [[nodiscard]] bool has(std::uint32_t number) const {
    if (number <= all_) return true;
    const std::uint32_t bit = number - all_ - 1;
    return bit < window && (some_[bit / 64] >> bit % 64 & 1) != 0;
  }
  void add(std::uint32_t number);
  void join(const CopySet& other);
  [[nodiscard]] bool contains(const CopySet& other) const;

 private:
  static constexpr std::uint32_t window = 256;
  /// Everything up to this number is known.
  void advance(std::uint32_t all);
  void settle();
  std::uint32_t all_ = 0;
  std::array<std::uint64_t, window / 64> some_{};  // bit i: of all_ + 1 + i
};

/// By warp of a block: everything up to this clock is known. 0: nothing.
struct Clocks : std::array<std::uint32_t, 32> {
  /// Likewise of the bulk copies that the block has started: a barrier of threads tells nothing of
  /// them, only who has waited for one does.
  CopySet copies;
};

inline void join(Clocks& to, const Clocks& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to[i] < from[i] ? from[i] : to[i];
  to.copies.join(from.copies);
}

/// What somebody knows of several blocks. Never changed once it is shared.
class VectorClock {
 public:
  using Entry =
      std::pair<std::uint32_t, std::shared_ptr<const Clocks>>;  // a block's number, clocks

  VectorClock() = default;
  explicit VectorClock(std::vector<Entry> entries) : entries_(std::move(entries)) {}
  /// Null if nothing is known of the block.
  [[nodiscard]] const Clocks* of(std::uint32_t block) const;
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;  // by block
};
using VectorClockRef = std::shared_ptr<const VectorClock>;  // null: nothing

/// Both together.
VectorClockRef join(const VectorClockRef& a, const VectorClockRef& b);

struct BlockRecord;
struct WarpRecord;

/// What is released to and acquired from in phases: an mbarrier, a named barrier.
struct Synchronizer {
  VectorClockRef released;   // by those that have arrived at the current phase
  VectorClockRef completed;  // at those that are over
  // Of an mbarrier: what was known at the end of each of its latest phases, the last one's parity,
  // and whether these are all of them since it was initialized.
  std::vector<VectorClockRef> phases;
  std::uint32_t last_parity = 1;
  bool whole = false;
  // By whom that was, under which clock of its warp, until a fence has come.
  struct Init {
    const WarpRecord* warp = nullptr;  // null: nobody, or a fence has come
    std::uint8_t lane = 0;
    std::uint32_t clock = 0;
    std::uintptr_t site = 0;
  } init;
  std::vector<std::pair<BlockRecord*, WarpRecord*>> arrivals;
};

}  // namespace rung::simt::record
