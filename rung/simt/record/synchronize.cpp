// SPDX-License-Identifier: Apache-2.0
// Happens-before edges of synchronization.
//
// A release first flushes the releasing warps, so that the shadow cells contain their accesses with
// clocks up to the released clock.
#include <algorithm>
#include <bit>
#include <utility>

#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {
namespace {

std::size_t index_of(const BlockRecord& block, const WarpRecord& warp) {
  return static_cast<std::size_t>(&warp - block.warps.data());
}

}  // namespace

void Recorder::tick(BlockRecord& block, WarpRecord& warp) {
  if (++warp.clock <= Cell::max_clock) return;
  // Clock overflow: clears the history, which may hide a race but causes no false report.
  launch_->new_era();
  ++block.era;
  for (WarpRecord& other : block.warps) other.known[index_of(block, warp)] = 0;
  std::fill(std::begin(warp.told), std::end(warp.told), 0);
  std::fill(std::begin(warp.proxy_clock), std::end(warp.proxy_clock), 0);
  block.flights.clear();
  for (auto& [object, meeting] : block.objects) {
    meeting.phases.clear();
    meeting.whole = false;
    meeting.init = {};
  }
  block.proxy_known[index_of(block, warp)] = 0;
  warp.clock = 1;
}

std::uint32_t Recorder::clock_now() const {
  const auto behind = [](const Step& step) {
    return step.clock + (step.access == Access::marker ? 1 : 0);
  };
  std::uint32_t clock = behind(*tracer.last);
  // A lane that inserts steps uses the clock of its own marks: the following step, left by other
  // lanes, may have an earlier clock.
  if (const RequestList* const list = warp_->list; list != nullptr && !list->linear()) {
    const std::uint32_t* const units = list->units_of(thread_->lane);
    for (std::uint32_t i = list->after(0); i != 0; i = list->after(i)) {
      if (units[i] != no_unit) clock = std::max(clock, behind(list->step(i)));
    }
  }
  return warp_->clock + clock;
}

VectorClockRef Recorder::vector_clock(std::uint32_t clock) const {
  auto own = std::make_shared<Clocks>(warp_->known);
  (*own)[index_of(*block_, *warp_)] = clock;
  std::vector<VectorClock::Entry> entry;
  entry.emplace_back(block_->number, std::move(own));
  return join(warp_->remote, std::make_shared<const VectorClock>(std::move(entry)));
}

void Recorder::acquire(BlockRecord& block, WarpRecord& warp, const VectorClockRef& from) {
  if (from == nullptr) return;
  if (const Clocks* own = from->of(block.number)) join(warp.known, *own);
  const bool others = from->entries().size() > 1 || from->of(block.number) == nullptr;
  if (others) warp.remote = join(warp.remote, from);
}

void Recorder::join_all(BlockRecord& block) {
  Clocks all{};
  VectorClockRef remote, pending;
  for (WarpRecord& warp : block.warps) {
    flush(block, warp);
    join(all, warp.known);
    remote = join(remote, warp.remote);
    pending = join(pending, warp.pending);
  }
  for (std::size_t i = 0; i < block.warps.size(); ++i) {
    all[i] = std::max(all[i], block.warps[i].clock);
  }
  for (WarpRecord& warp : block.warps) {
    warp.known = all;
    warp.remote = remote;
    warp.at_barrier = 0;
    warp.stale_wait = warp.early_wait = 0;
    tick(block, warp);
    std::fill(std::begin(warp.synced), std::end(warp.synced), warp.clock);
    if (pending != nullptr) {  // acquired by a later fence of one of these lanes
      warp.pending = pending;
      warp.pending_lanes = ~std::uint32_t{0};
    }
    if (!block.fenced) continue;
    warp.fenced = warp.fenced_for_all = ~std::uint32_t{0};
    std::fill(std::begin(warp.fence_clock), std::end(warp.fence_clock), warp.clock - 1);
  }
  block.fenced = false;
  ++block.interval;
  block.partial = false;
}

/// Processes the list of a warp once all its threads have arrived, before other warps run: the
/// values that the warp wrote are still in memory.
void Recorder::block_arrived() {
  const auto live = static_cast<std::uint32_t>(std::popcount(~thread_->warp->exited));
  if (!checking_ || ++warp_->at_barrier < live) return;
  waits_without(*block_, *warp_);
  flush(*block_, *warp_);
  end_skip(*warp_);
}

void Recorder::block_met(Block& block, const Place& place) {
  for (WarpRecord& warp : block.record->warps) waits_without(*block.record, warp);
  join_all(*block.record);
  for (WarpRecord& warp : block.record->warps) end_skip(warp);
  if (!counting_) return;
  for (WarpRecord& warp : block.record->warps) {
    warp.trace.emplace_back(0, 1, SectorRun::Kind::barrier, false, 0);
  }
  counts_[site_index(site_of(place))].counters.barriers += block.warps.size();
  for (WarpRecord& warp : block.record->warps) warp.waits.barrier();
}

void Recorder::named_barrier_met(Block& block, int barrier) {
  BlockRecord& record = *block.record;
  record.partial = true;
  std::uint32_t waiting = 0;  // number of warps
  for (const Thread& thread : block.threads) {
    if (thread.wait != Wait::barrier || thread.barrier != barrier) continue;
    waiting |= 1u << (thread.warp - block.warps.data());
  }
  Synchronizer& meeting = record.barriers[barrier];
  Clocks all{};
  VectorClockRef remote = std::exchange(meeting.released, nullptr);
  if (remote != nullptr) {
    if (const Clocks* own = remote->of(record.number)) join(all, *own);
  }
  for (std::uint32_t left = waiting; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctz(left));
    WarpRecord& warp = record.warps[i];
    flush(record, warp);
    warp.waits.barrier();
    join(all, warp.known);
    all[i] = std::max(all[i], warp.clock);
    remote = join(remote, warp.remote);
  }
  for (std::uint32_t left = waiting; left != 0; left &= left - 1) {
    WarpRecord& warp = record.warps[static_cast<std::size_t>(__builtin_ctz(left))];
    join(warp.known, all);
    warp.remote = remote;
    tick(record, warp);
    std::fill(std::begin(warp.synced), std::end(warp.synced), warp.clock);
  }
}

void Recorder::named_barrier_arrived(Block& block, int barrier, const Place& place) {
  arrived_at(block.record->barriers[barrier], place);
}

void Recorder::lanes_met(const Warp& lanes, std::uint32_t mask, bool exchanges) {
  const Thread& first = *lanes.lanes[__builtin_ctz(mask)];
  BlockRecord& block = *first.block->record;
  WarpRecord& warp = block.warps[static_cast<std::size_t>(&lanes - first.block->warps.data())];
  flush(block, warp, (mask | lanes.exited) == ~std::uint32_t{0});
  end_skip(warp);
  if (exchanges) warp.waits.exchange();
  tick(block, warp);
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    warp.synced[__builtin_ctz(left)] = warp.clock;
  }
  if ((warp.pending_lanes & mask) != 0) warp.pending_lanes |= mask;
  if (!warp.any_told) return;
  // Each lane acquires the clocks that any of the lanes has acquired from other lanes of the warp.
  std::uint32_t told = 0;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    told = std::max(told, warp.told[__builtin_ctz(left)]);
  }
  for (; mask != 0; mask &= mask - 1) warp.told[__builtin_ctz(mask)] = told;
}

void Recorder::cluster_met(const Cluster& cluster) {
  std::vector<VectorClock::Entry> entries;
  VectorClockRef remote;
  for (const auto& block : cluster.blocks) {
    BlockRecord& record = *block->record;
    join_all(record);
    heed(record);
    entries.emplace_back(record.number, std::make_shared<const Clocks>(record.warps[0].known));
    remote = join(remote, record.warps[0].remote);
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  remote = join(remote, std::make_shared<const VectorClock>(std::move(entries)));
  for (const auto& block : cluster.blocks) {
    // Other blocks may have waited for copies that this one has started, as for a multicast.
    const Clocks* const own = remote->of(block->record->number);
    for (WarpRecord& warp : block->record->warps) {
      warp.remote = remote;
      if (own != nullptr) warp.known.copies.join(own->copies);
    }
    ++block->record->cluster_phase;
  }
}

void Recorder::grid_met(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  for (const auto& cluster : clusters) {
    for (const auto& block : cluster->blocks) {
      join_all(*block->record);
      heed(*block->record);
    }
  }
  launch_->new_era();  // all earlier accesses happen before all later ones
}

/// Acquires the pending flags of the block's lanes, since cluster and grid barriers are fences.
void Recorder::heed(BlockRecord& block) {
  for (WarpRecord& warp : block.warps) {
    acquire(block, warp, warp.pending);
    warp.pending = warp.last_pending = nullptr;
    warp.pending_lanes = 0;
  }
}

/// Releases the warp's clock to the object and inserts a mark; the clock advances for each lane
/// that passes the mark.
void Recorder::arrived_at(Synchronizer& object, const Place& place) {
  object.released = join(object.released, vector_clock(clock_now()));
  trace_slowly(0, site_of(place), 0, Access::marker);
}

void Recorder::arrived(Block& owner, const void* object, const Place& place) {
  Synchronizer& meeting = owner.record->objects[object];
  arrived_at(meeting, place);
  const std::pair<BlockRecord*, WarpRecord*> who{block_, warp_};
  auto& arrivals = meeting.arrivals;
  if (std::find(arrivals.begin(), arrivals.end(), who) == arrivals.end()) arrivals.push_back(who);
}

}  // namespace rung::simt::record
