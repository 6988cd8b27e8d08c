// SPDX-License-Identifier: Apache-2.0
// Data of a recorded launch that its workers share.
#include "rung/simt/record/launch_record.hpp"

#include <algorithm>
#include <utility>

#include "rung/simt/record/cache_replay.hpp"
#include "rung/simt/record/registry.hpp"
#include "rung/simt/record/session.hpp"

namespace rung::simt::record {
namespace {

std::atomic<std::uint32_t> last_era{0};

}  // namespace

LaunchRecord::LaunchRecord(const Launch& given)
    : launch(given),
      counting((mode.load() & Mode::counting) != 0),
      checking((mode.load() & Mode::checks) != 0),
      sampling(given, checking && !counting),
      era_(++last_era),
      sites_(1, 0),
      findings_before_(findings_added()) {}

void LaunchRecord::new_era() { era_ = ++last_era; }

std::uint16_t LaunchRecord::number_of(std::uintptr_t site) {
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] = numbers_.try_emplace(site, 0);
  if (fresh && sites_.size() < max_sites) {
    at->second = static_cast<std::uint16_t>(sites_.size());
    sites_.push_back(site);
  }
  return at->second;
}

std::uintptr_t LaunchRecord::site_of(std::uint16_t number) {
  const std::lock_guard lock(mutex_);
  return number < sites_.size() ? sites_[number] : 0;
}

void LaunchRecord::hold(Finding finding, GuessPlace read, std::uint16_t atomic_site) {
  const std::lock_guard lock(mutex_);
  held_.push_back({std::move(finding), read, atomic_site});
}

void LaunchRecord::guessed(GuessPlace read, std::uint16_t compare_site) {
  const std::lock_guard lock(mutex_);
  guesses_.insert(read);
  compares_.insert(compare_site);
}

Coverage& LaunchRecord::coverage_of(const Region& region) {
  const std::lock_guard lock(mutex_);
  return coverage_.try_emplace(&region, region.memory.begin, region.memory.bytes).first->second;
}

void LaunchRecord::add(const std::vector<SiteCount>& counts, const Work& work,
                       std::uint64_t requests, const std::set<const Region*>& written,
                       const Overlaps& overlaps) {
  const std::lock_guard lock(mutex_);
  overlaps_.add(overlaps);
  if (LaunchSummary* const summary = launch.summary; summary != nullptr) {
    summary->requests += requests;
    for (const Region* region : written) summary->written.push_back(region->memory.begin);
  }
  work_.warps += work.warps;
  work_.divergent_warps += work.divergent_warps;
  work_.distinct_load_bytes += work.distinct_load_bytes;
  work_.distinct_store_bytes += work.distinct_store_bytes;
  work_.visits += work.visits;
  work_.longest_block = std::max(work_.longest_block, work.longest_block);
  work_.longest_warp = std::max(work_.longest_warp, work.longest_warp);
  work_.waits += work.waits;
  for (const SiteCount& one : counts) {
    if (one.any()) counts_[one.site] += one;
  }
}

void LaunchRecord::add(const Footprint& footprint) {
  const std::lock_guard lock(mutex_);
  launch.footprint->add(footprint);
}

void LaunchRecord::add(const WrittenRanges& ranges) {
  const std::lock_guard lock(mutex_);
  ranges_.add(ranges);
}

void LaunchRecord::keep(BlockTrace trace) {
  const std::lock_guard lock(mutex_);
  traces_.push_back(std::move(trace));
}

void LaunchRecord::replay_caches() {
  work_.caches_known = kept_ <= max_sector_runs;
  const dialect::dim3& extent = launch.block;
  const CacheShape shape = cache_shape(
      modeled_chip(), std::uint64_t{extent.x} * extent.y * extent.z, shared_bytes(launch));
  work_.l1_bytes = shape.l1_bytes;
  if (!work_.caches_known) return;
  const Replayed replayed = replay(traces_, sites_.size(), modeled_chip(), shape);
  work_.dirty_bytes = replayed.dirty_bytes;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const auto at = counts_.find(sites_[i]);
    if (at != counts_.end()) at->second.counters += replayed.sites[i];
  }
}

void LaunchRecord::finish() {
  for (Held& one : held_) {
    const bool guess =
        one.read != 0 ? guesses_.contains(one.read) : compares_.contains(one.atomic_site);
    if (!guess) record::add(std::move(one.finding));
  }
  overlaps_.report(launch);
  if (launch.summary != nullptr) launch.summary->findings = findings_added() - findings_before_;
  if (const std::uint64_t left_out = sampling.left_out(); left_out != 0) {
    if (!sampling.mark_written()) ranges_.mark_initialized(!sampling.regular());
    if (launch.summary != nullptr) {
      launch.summary->blocks_left_out = left_out;
      // Extrapolated to all blocks.
      launch.summary->requests *= sampling.blocks() / (sampling.blocks() - left_out);
    }
  }
  if (!counting) return;
  replay_caches();
  add_launch(launch, work_, counts_);
}

}  // namespace rung::simt::record
