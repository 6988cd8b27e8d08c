// SPDX-License-Identifier: Apache-2.0
// Data of a recorded launch that its workers share. Internal to simt/.
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

/// Key of a read that the program may validate later (optimistic_read.cpp): its site, and the
/// serial number of the accessed region (0: shared memory), since one site may read several
/// regions. Key 0: the read is one of many, and it is unknown which one.
using GuessPlace = std::uint64_t;
inline GuessPlace place_of_guess(const Region* region, std::uint16_t site) {
  return site == 0 ? 0 : (region == nullptr ? 0 : region->serial) << 16 | site;
}

/// Counts of one site.
struct SiteCount {
  std::uintptr_t site = 0;
  Counters counters;
  bool exact = true;
  std::uint32_t stretch = 0;         // the latest list that contains the site
  std::uint32_t lanes = 0;           // lanes active at the site in this list
  std::uint64_t local_accesses = 0;  // accesses of threads to their own stacks
  // For a basic block: how often a warp left it, how often its lanes diverged, and its successor.
  // `both_ways` is false if the block does not end in a branch, or the branch always took the same
  // direction.
  std::uint64_t ways = 0;
  std::uint64_t partings = 0;
  std::uintptr_t way = 0;
  bool both_ways = false;
  // Cached result of is_part_of_condition().
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
  static constexpr std::size_t max_sites = 4096;  // limited by the bits of a shadow cell

  explicit LaunchRecord(const Launch& launch);
  /// Adds the counts to the session, and reports the deferred findings.
  void finish();

  const Launch& launch;
  const bool counting;
  const bool checking;
  BlockSampling sampling;

  /// Returns the site's number, from 1 and the same for all workers; 0 for sites beyond max_sites.
  std::uint16_t number_of(std::uintptr_t site);
  [[nodiscard]] std::uintptr_t site_of(std::uint16_t number);
  /// Defers the finding of a read that races with an atomic operation: it is reported at the end of
  /// the launch unless the program has validated the read.
  void hold(Finding finding, GuessPlace read, std::uint16_t atomic_site);
  /// Records that the value of this read is later compared and exchanged at `compare_site`
  /// (optimistic_read.cpp).
  void guessed(GuessPlace read, std::uint16_t compare_site);
  /// Adds the counts of one worker. Only warps and bytes of `work` are used.
  void add(const std::vector<SiteCount>& counts, const Work& work, std::uint64_t requests,
           const std::set<const Region*>& written, const Overlaps& overlaps);
  void add(const Footprint& footprint);
  void add(const WrittenRanges& ranges);
  /// Keeps a block's trace of the sectors of global memory that its warps accessed.
  void keep(BlockTrace trace);
  /// Reserves `runs` more sector runs. Returns false if this exceeds max_sector_runs.
  bool may_keep(std::uint64_t runs) {
    return kept_.fetch_add(runs, std::memory_order_relaxed) + runs <= max_sector_runs;
  }
  /// Returns this launch's coverage of the region.
  Coverage& coverage_of(const Region& region);

  /// Returns the current era; shadow cells of another era count as empty.
  [[nodiscard]] std::uint32_t era() const { return era_.load(std::memory_order_relaxed); }
  void new_era();

  /// Flags in global memory, by address; guarded by the mutex.
  struct Flag {
    VectorClockRef released;
    VectorClockRef in_block;  // clocks released by a block-scope fence
    std::uint32_t block = 0;  // block of this fence
  };
  struct Flags {
    std::atomic<bool> any = false;  // true once a flag has been published
    std::mutex mutex;
    std::unordered_map<std::uintptr_t, Flag> at;
  };
  Flags flags;

 private:
  /// Replays the traces and adds the counts of the cache model.
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
  std::unordered_set<GuessPlace> guesses_;      // read sites
  std::unordered_set<std::uint16_t> compares_;  // sites that compare a value read earlier
  std::unordered_map<std::uintptr_t, std::uint16_t> numbers_;
  std::unordered_map<std::uintptr_t, SiteCount> counts_;
  std::unordered_map<const Region*, Coverage> coverage_;
  Overlaps overlaps_;
  WrittenRanges ranges_;
  Work work_;
  const std::uint64_t findings_before_;
};

}  // namespace rung::simt::record
