// SPDX-License-Identifier: Apache-2.0
// Sampling of a launch's blocks: blocks that repeat others run unrecorded. Internal to simt/.
//
// The blocks of a regular kernel do the same work at addresses that are affine in the block index.
// Each recorded block leaves a fingerprint: a hash of its requests without addresses, and a
// weighted sum of its global addresses. In a regular launch all inner blocks have the same hash and
// affine sums; any irregular access (a loaded index, a data-dependent trip count, a bounds check
// that masks part of a block) changes one of these. Blocks at an edge of the grid, a fixed sample
// of groups of 2 x 2 x 2 blocks and, in a one-dimensional grid, a pair of blocks at every distance
// are always recorded. The first block that does not match ends the sampling: all later blocks are
// recorded.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "rung/simt/simulator.hpp"

namespace rung::simt::record {

struct Region;

/// Contiguous bytes of a region that a block has written: offsets of the first byte and past the
/// last.
struct WrittenRun {
  Region* region = nullptr;
  std::uint64_t begin = 0, end = 0;
};

/// Fingerprint of a block: sums, which are independent of the order of its warps.
struct BlockFingerprint {
  std::uint64_t shape = 0;      // hash of its requests, without global addresses
  std::uint64_t addresses = 0;  // weighted sum of global addresses, modulo 2^64
  std::uint64_t requests = 0;
  std::vector<WrittenRun> written;  // in memory whose initialized bytes are tracked
  bool all_written = true;          // false: more runs than are kept

  /// Adds bytes that the block has written.
  void add_written(Region* region, std::uint64_t begin, std::uint64_t end);
};

/// Byte ranges that the recorded blocks of a launch have written, as [begin, end) offsets in each
/// region.
class WrittenRanges {
 public:
  void add(Region* region, std::uint64_t begin, std::uint64_t end);
  void add(const WrittenRanges& other) {
    for (const Range& one : other.ranges_) add(one.region, one.begin, one.end);
  }
  void clear() { ranges_.clear(); }
  /// Marks the ranges (`whole`: their whole regions) as initialized, since skipped blocks may have
  /// written inside them.
  void mark_initialized(bool whole) const;

 private:
  struct Range {
    Region* region;
    std::uint64_t begin, end;
  };
  std::vector<Range> ranges_;
};

class BlockSampling {
 public:
  /// Constructs the sampling of a launch. `allowed`: false while the session counts.
  BlockSampling(const Launch& launch, bool allowed);

  /// Returns true if blocks may be skipped.
  [[nodiscard]] bool possible() const { return possible_; }
  /// Returns true if the block must be recorded. Called once per block.
  bool records(const dialect::uint3& index);
  /// Counts a block that runs unrecorded because the resident blocks do.
  void leave_out();
  /// Adds the fingerprint of a recorded block that has ended.
  void note(const dialect::uint3& index, const BlockFingerprint& block);
  /// Marks the bytes that inner blocks have written as initialized, extrapolated from the runs of
  /// recorded blocks. Returns false if the runs are not affine in the block index.
  bool mark_written();
  /// Records all later blocks: the launch is not regular, or blocks may depend on each other.
  void give_up() { regular_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] bool regular() const { return regular_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }
  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }

 private:
  static constexpr int axes = 3;
  struct Position {
    std::uint64_t at[axes];
  };
  [[nodiscard]] bool is_inner(const Position& block) const;
  /// Returns true if the block is in a fixed subset of a one-dimensional grid that contains a pair
  /// of blocks at every distance.
  [[nodiscard]] bool measures_distance(const Position& block) const;
  [[nodiscard]] std::uint64_t linear(const Position& block) const;
  /// Derives address slopes between adjacent blocks. Returns true if it found a new slope.
  bool learn_slopes(const Position& block, std::uint64_t addresses);
  [[nodiscard]] bool is_affine(const Position& block, std::uint64_t addresses) const;
  [[nodiscard]] bool is_known() const;
  /// Derives the distance between the runs of adjacent blocks along an axis.
  void learn_runs(int axis, const std::vector<WrittenRun>& lower,
                  const std::vector<WrittenRun>& upper);
  /// Returns the distance from run i of the first block to run i of this block.
  [[nodiscard]] std::uint64_t run_shift(const Position& block, std::size_t i) const;
  void check_runs(const Position& block, const std::vector<WrittenRun>& runs);

  const bool possible_;
  const std::uint64_t extent_[axes];
  const std::uint64_t blocks_;
  const std::uint64_t findings_before_;
  std::atomic<bool> regular_{true};
  std::mutex mutex_;  // guards the members below
  struct Member {
    Position position;
    std::uint64_t addresses;
    std::vector<WrittenRun> runs;  // until the slopes are known
  };
  std::unordered_map<std::uint64_t, Member> members_;  // recorded inner blocks, by linear index
  Position first_{};                                   // position of the first recorded inner block
  BlockFingerprint first_did_;
  std::uint64_t slope_[axes] = {};
  bool has_slope_[axes] = {};
  // Runs that the first block has written, sorted, and per axis the distance from each run to the
  // same run of the adjacent block, modulo 2^64.
  std::vector<WrittenRun> runs_;
  std::vector<std::uint64_t> run_slopes_[axes];
  bool runs_fit_ = true;
  std::uint64_t left_out_ = 0;
};

}  // namespace rung::simt::record
