// SPDX-License-Identifier: Apache-2.0
// What one launch's workers record together. Internal to simt/.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rung/simt/record.hpp"
#include "rung/simt/record/block_sampling.hpp"
#include "rung/simt/record/cache_trace.hpp"
#include "rung/simt/record/coverage.hpp"
#include "rung/simt/record/footprint.hpp"
#include "rung/simt/record/overlap.hpp"
#include "rung/simt/record/registry.hpp"
#include "rung/simt/record/vector_clock.hpp"

namespace rung::simt::record {

/// Where code reads what it later compares: a site, in one allocation (0: shared memory), since a
/// function may look into several. 0: of some of many readers.
using GuessPlace = std::uint64_t;
inline GuessPlace place_of_guess(const Region* region, std::uint16_t site) {
  return site == 0 ? 0 : (region == nullptr ? 0 : region->serial) << 16 | site;
}

/// What was counted at one place in the code.
struct SiteCount {
  std::uintptr_t site = 0;
  Counters counters;
  bool exact = true;
  std::uint32_t stretch = 0;         // the list in which it was seen last ...
  std::uint32_t lanes = 0;           // ... and the lanes that took part there
  std::uint64_t local_accesses = 0;  // of threads to their own memory
  // Of a basic block: how often a warp went on from it, how often its lanes parted, and where to.
  // One place alone: what ends it is no branch, or never decided anything.
  std::uint64_t ways = 0;
  std::uint64_t partings = 0;
  std::uintptr_t way = 0;
  bool both_ways = false;
  // Looked up where somebody asks.
  enum class Answer : std::uint8_t { unknown, no, yes };
  Answer part_of_condition = Answer::unknown;

  void went(std::uintptr_t to) {
    if (way == 0) way = to;
    both_ways |= way != to;
  }
  [[nodiscard]] bool any() const {
    return counters.active_lanes + counters.barriers + counters.local_requests +
               counters.bulk_copies + counters.matrix_products + counters.basic_blocks !=
           0;
  }
  SiteCount& operator+=(const SiteCount& other) {
    counters += other.counters;
    exact &= other.exact;
    ways += other.ways;
    partings += other.partings;
    if (other.way != 0) went(other.way);
    both_ways |= other.both_ways;
    return *this;
  }
};

class LaunchRecord {
 public:
  static constexpr std::size_t max_sites = 4096;  // what a shadow cell can name

  explicit LaunchRecord(const Launch& launch);
  /// Adds what was counted to the session.
  void finish();

  const Launch& launch;
  const bool counting;
  const bool checking;
  BlockSampling sampling;

  /// One number for all workers, from 1; 0 stands for all that are too many.
  std::uint16_t number_of(std::uintptr_t site);
  [[nodiscard]] std::uintptr_t site_of(std::uint16_t number);
  /// A read that races with an atomic operation is reported at the end, unless it was a guess.
  void hold(Finding finding, GuessPlace read, std::uint16_t atomic_site);
  /// What is read there is compared and exchanged later, here (optimistic_read.cpp).
  void guessed(GuessPlace read, std::uint16_t compare_site);
  /// What one worker has counted. Of `work` warps and bytes.
  void add(const std::vector<SiteCount>& counts, const Work& work, std::uint64_t requests,
           const std::set<const Region*>& written, const Overlaps& overlaps);
  void add(const Footprint& footprint);
  void add(const WrittenRanges& ranges);
  /// Keeps the sectors of global memory that a block's warps asked for.
  void keep(BlockTrace trace);
  /// Counts so many more runs of sectors. Returns false if they are too many to be kept.
  bool may_keep(std::uint64_t runs) {
    return kept_.fetch_add(runs, std::memory_order_relaxed) + runs <= max_sector_runs;
  }
  /// Of this launch, and this memory.
  Coverage& coverage_of(const Region& region);

  /// Shadow cells of another era are as new.
  [[nodiscard]] std::uint32_t era() const { return era_.load(std::memory_order_relaxed); }
  void new_era();

  /// Flags in global memory, by address; behind the lock.
  struct Flag {
    VectorClockRef released;
    VectorClockRef in_block;  // behind a fence that reaches no further
    std::uint32_t block = 0;  // the one
  };
  struct Flags {
    std::atomic<bool> any = false;  // whether one has ever been published
    std::mutex mutex;
    std::unordered_map<std::uintptr_t, Flag> at;
  };
  Flags flags;

 private:
  /// Adds what the caches would have done.
  void replay_caches();

  const RegionsInUse regions_;
  std::vector<BlockTrace> traces_;
  std::atomic<std::uint64_t> kept_ = 0;
  std::mutex mutex_;
  std::atomic<std::uint32_t> era_;
  std::vector<std::uintptr_t> sites_;
  struct Held {
    Finding finding;
    GuessPlace read;
    std::uint16_t atomic_site;
  };
  std::vector<Held> held_;
  std::unordered_set<GuessPlace> guesses_;      // where is read
  std::unordered_set<std::uint16_t> compares_;  // and that compare what they have read
  std::unordered_map<std::uintptr_t, std::uint16_t> numbers_;
  std::unordered_map<std::uintptr_t, SiteCount> counts_;
  std::unordered_map<const Region*, Coverage> coverage_;
  Overlaps overlaps_;
  WrittenRanges ranges_;
  Work work_;
  const std::uint64_t findings_before_;
};

}  // namespace rung::simt::record
