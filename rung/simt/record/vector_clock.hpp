// SPDX-License-Identifier: Apache-2.0
// Vector clocks: the happens-before order, with one logical clock per warp. Internal to simt/.
//
// A warp's clock advances at each release by the warp: a barrier, a __syncwarp, a flag written
// after a fence. A warp keeps the acquired clock of each warp of its block, and acquires clocks of
// other blocks through flags and cluster barriers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rung/simt/limits.hpp"

namespace rung::simt::record {

/// Set of bulk copies known to have landed, numbered from 1: all numbers up to `all_`, and a subset
/// of the next 256. A copy 256 or more numbers behind the latest one in the set is assumed to have
/// landed.
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
  /// Adds all numbers up to `all`.
  void advance(std::uint32_t all);
  void settle();
  std::uint32_t all_ = 0;
  std::array<std::uint64_t, window / 64> some_{};  // bit i: copy all_ + 1 + i
};

/// Acquired clock per warp of a block; 0: none.
struct Clocks : std::array<std::uint32_t, 32> {
  /// Bulk copies of the block known to have landed. Acquired by waiting for the copies; barriers
  /// between threads do not suffice.
  CopySet copies;
};

inline void join(Clocks& to, const Clocks& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to[i] < from[i] ? from[i] : to[i];
  to.copies.join(from.copies);
}

/// Acquired clocks of several blocks. Immutable once shared.
class VectorClock {
 public:
  using Entry = std::pair<std::uint32_t, std::shared_ptr<const Clocks>>;  // block number, clocks

  VectorClock() = default;
  explicit VectorClock(std::vector<Entry> entries) : entries_(std::move(entries)) {}
  /// Returns the acquired clocks of a block; null if there are none.
  [[nodiscard]] const Clocks* of(std::uint32_t block) const;
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;  // sorted by block
};
using VectorClockRef = std::shared_ptr<const VectorClock>;  // null: no clocks

/// Returns the element-wise maximum of `a` and `b`.
VectorClockRef join(const VectorClockRef& a, const VectorClockRef& b);

struct BlockRecord;
struct WarpRecord;

/// A synchronization object with phases: an mbarrier or a named barrier.
struct Synchronizer {
  VectorClockRef released;   // clocks released by arrivals at the current phase
  VectorClockRef completed;  // clocks released by the completed phases
  // For an mbarrier: vector clocks at the end of the latest phases, the parity of the last phase,
  // and whether `phases` holds all phases since the initialization (`whole`).
  std::vector<VectorClockRef> phases;
  std::uint32_t last_parity = 1;
  bool whole = false;
  // Initializing thread and its warp's clock, kept until a fence.
  struct Init {
    const WarpRecord* warp = nullptr;  // null: not initialized, or fenced
    std::uint8_t lane = 0;
    std::uint32_t clock = 0;
    std::uintptr_t site = 0;
  } init;
  std::vector<std::pair<BlockRecord*, WarpRecord*>> arrivals;
  // For an mbarrier: announced bytes that have not landed, negative if more have landed than were
  // announced; the contents that state this; and the last announcement.
  std::int64_t lacking = 0;
  std::uint64_t word = 0;
  struct Announcement {
    std::uintptr_t site = 0;  // 0: none
    std::uint32_t block = 0, thread = 0;
  } announced;
};

}  // namespace rung::simt::record
