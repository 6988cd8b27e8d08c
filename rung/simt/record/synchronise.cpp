// SPDX-License-Identifier: Apache-2.0
// What threads learn of each other when they synchronise.
//
// Before anybody is told anything, the warps that tell are flushed: what they have accessed is in
// the shadow cells under the clock that the others hear of.
#include <algorithm>
#include <bit>
#include <utility>

#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {
namespace {

/// Every fence is alike: a mark in a warp's list, which its lanes pass one after another.
constexpr std::uintptr_t fence_site = place_bit | 1;

std::size_t index_of(const BlockRecord& block, const WarpRecord& warp) {
  return static_cast<std::size_t>(&warp - block.warps.data());
}

/// The warp's next accesses are news to all that have been told so far.
void tick(LaunchRecord& launch, BlockRecord& block, WarpRecord& warp) {
  if (++warp.clock <= Cell::most_clock) return;
  // Cells cannot hold it: everything before is forgotten, which may hide a race but tells no lie.
  launch.new_era();
  ++block.era;
  for (WarpRecord& other : block.warps) other.known[index_of(block, warp)] = 0;
  std::fill(std::begin(warp.told), std::end(warp.told), 0);
  std::fill(std::begin(warp.proxy_clock), std::end(warp.proxy_clock), 0);
  block.proxy_known[index_of(block, warp)] = 0;
  warp.clock = 1;
}

}  // namespace

std::uint32_t Recorder::clock_now() const {
  return warp_->clock + tracer.last->clock + (tracer.last->access == Access::marker ? 1 : 0);
}

KnowledgeRef Recorder::knowledge(std::uint32_t clock) const {
  auto own = std::make_shared<Clocks>(warp_->known);
  (*own)[index_of(*block_, *warp_)] = clock;
  std::vector<Knowledge::Entry> entry;
  entry.emplace_back(block_->number, std::move(own));
  return join(warp_->remote, std::make_shared<const Knowledge>(std::move(entry)));
}

void Recorder::acquire(BlockRecord& block, WarpRecord& warp, const KnowledgeRef& from) {
  if (from == nullptr) return;
  if (const Clocks* own = from->of(block.number)) join(warp.known, *own);
  const bool others = from->entries().size() > 1 || from->of(block.number) == nullptr;
  if (others) warp.remote = join(warp.remote, from);
}

void Recorder::join_all(BlockRecord& block) {
  Clocks all{};
  KnowledgeRef remote;
  for (WarpRecord& warp : block.warps) {
    flush(block, warp);
    join(all, warp.known);
    remote = join(remote, warp.remote);
  }
  for (std::size_t i = 0; i < block.warps.size(); ++i) {
    all[i] = std::max(all[i], block.warps[i].clock);
  }
  for (WarpRecord& warp : block.warps) {
    warp.known = all;
    warp.remote = remote;
    warp.at_barrier = 0;
    tick(*launch_, block, warp);
    std::fill(std::begin(warp.synced), std::end(warp.synced), warp.clock);
    if (!block.fenced) continue;
    warp.fenced = warp.fenced_for_all = ~std::uint32_t{0};
    std::fill(std::begin(warp.fence_clock), std::end(warp.fence_clock), warp.clock - 1);
  }
  block.fenced = false;
  ++block.interval;
  block.partial = false;
}

/// A warp that has come whole is looked at before others go on: what it wrote is still there.
void Recorder::block_arrived() {
  const auto live = static_cast<std::uint32_t>(std::popcount(~thread_->warp->exited));
  if (checking_ && ++warp_->at_barrier >= live) flush(*block_, *warp_);
}

void Recorder::block_met(Block& block, const Place& place) {
  join_all(*block.record);
  if (!counting_) return;
  counts_[site_index(site_of(place))].counters.barriers += block.warps.size();
}

void Recorder::named_barrier_met(Block& block, int barrier) {
  BlockRecord& record = *block.record;
  record.partial = true;
  std::uint32_t waiting = 0;  // warps
  for (const Thread& thread : block.threads) {
    if (thread.wait != Wait::barrier || thread.barrier != barrier) continue;
    waiting |= 1u << (thread.warp - block.warps.data());
  }
  Synchroniser& meeting = record.barriers[barrier];
  Clocks all{};
  KnowledgeRef remote = std::exchange(meeting.released, nullptr);
  if (remote != nullptr) {
    if (const Clocks* own = remote->of(record.number)) join(all, *own);
  }
  for (std::uint32_t left = waiting; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctz(left));
    WarpRecord& warp = record.warps[i];
    flush(record, warp);
    join(all, warp.known);
    all[i] = std::max(all[i], warp.clock);
    remote = join(remote, warp.remote);
  }
  for (std::uint32_t left = waiting; left != 0; left &= left - 1) {
    WarpRecord& warp = record.warps[static_cast<std::size_t>(__builtin_ctz(left))];
    join(warp.known, all);
    warp.remote = remote;
    tick(*launch_, record, warp);
    std::fill(std::begin(warp.synced), std::end(warp.synced), warp.clock);
  }
}

void Recorder::named_barrier_arrived(Block& block, int barrier, const Place& place) {
  arrived_at(block.record->barriers[barrier], place);
}

void Recorder::lanes_met(const Warp& lanes, std::uint32_t mask) {
  const Thread& first = *lanes.lanes[__builtin_ctz(mask)];
  BlockRecord& block = *first.block->record;
  WarpRecord& warp = block.warps[static_cast<std::size_t>(&lanes - first.block->warps.data())];
  flush(block, warp, (mask | lanes.exited) == ~std::uint32_t{0});
  tick(*launch_, block, warp);
  for (; mask != 0; mask &= mask - 1) warp.synced[__builtin_ctz(mask)] = warp.clock;
}

void Recorder::cluster_met(const Cluster& cluster) {
  std::vector<Knowledge::Entry> entries;
  KnowledgeRef remote;
  for (const auto& block : cluster.blocks) {
    BlockRecord& record = *block->record;
    join_all(record);
    entries.emplace_back(record.number, std::make_shared<const Clocks>(record.warps[0].known));
    remote = join(remote, record.warps[0].remote);
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  remote = join(remote, std::make_shared<const Knowledge>(std::move(entries)));
  for (const auto& block : cluster.blocks) {
    for (WarpRecord& warp : block->record->warps) warp.remote = remote;
  }
}

void Recorder::grid_met(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  for (const auto& cluster : clusters) {
    for (const auto& block : cluster->blocks) join_all(*block->record);
  }
  launch_->new_era();  // all that has been is over for all
}

/// The list goes on behind a mark, under a later clock: lanes come here one after another.
void Recorder::arrived_at(Synchroniser& object, const Place& place) {
  object.released = join(object.released, knowledge(clock_now()));
  trace_slowly(0, site_of(place), 0, Access::marker);
}

void Recorder::arrived(Block& owner, const void* object, const Place& place) {
  Synchroniser& meeting = owner.record->objects[object];
  arrived_at(meeting, place);
  const std::pair<BlockRecord*, WarpRecord*> who{block_, warp_};
  auto& arrivals = meeting.arrivals;
  if (std::find(arrivals.begin(), arrivals.end(), who) == arrivals.end()) arrivals.push_back(who);
}

void Recorder::completed(Block& owner, const void* object) {
  Synchroniser& meeting = owner.record->objects[object];
  for (const auto& [block, warp] : std::exchange(meeting.arrivals, {})) flush(*block, *warp);
  meeting.completed = join(meeting.completed, std::exchange(meeting.released, nullptr));
}

void Recorder::waited(Block& owner, const void* object) {
  block_->partial = true;
  const KnowledgeRef& completed = owner.record->objects[object].completed;
  acquire(*block_, *warp_, completed);
  tell_lane(completed);
}

void Recorder::tell_lane(const KnowledgeRef& from) {
  const Clocks* const own = from != nullptr ? from->of(block_->number) : nullptr;
  if (own == nullptr) return;
  std::uint32_t& told = warp_->told[thread_->lane];
  told = std::max(told, (*own)[index_of(*block_, *warp_)]);
}

// --- flags ---------------------------------------------------------------------------------------

void Recorder::fence(bool device) {
  const std::uint32_t lane = 1u << thread_->lane;
  warp_->fenced |= lane;
  // What comes behind the fence is not published by the flag, though written before it.
  warp_->fence_clock[thread_->lane] = clock_now();
  if (checking_) trace_slowly(0, fence_site, 0, Access::marker);
  if (device) {
    warp_->fenced_for_all |= lane;
    block_->fenced = true;
  }
}

void Recorder::before_atomic(std::uintptr_t address, int log_size, Access access, int order,
                             std::uintptr_t site, bool compares) {
  trace(address, site, log_size, access);
  if (!checking_ || is_local(address)) return;
  Target& target = warp_->list->target(warp_->list->index_of(tracer.last));
  if (target.where != Where::global && target.where != Where::shared) return;
  target.compares |= compares;
  warp_->compared |= compares;
  LaunchRecord::Flags& flags = launch_->flags;
  // Whoever reads it may go by it, with a fence behind or without: formally one is due, but what
  // goes wrong without is rare, and programs that do so are many.
  if (access != Access::volatile_write) {
    KnowledgeRef heard, heard_in_block;
    {
      const std::lock_guard lock(flags.mutex);
      if (const auto at = flags.at.find(address); at != flags.at.end()) {
        heard = at->second.released;
        if (at->second.block == block_->number) heard_in_block = at->second.in_block;
        block_->partial = true;
      }
    }
    if (heard != warp_->heard || heard_in_block != warp_->heard_in_block) {
      // What the warp did before is judged by what it knew then.
      flush(*block_, *warp_, false);
      acquire(*block_, *warp_, heard);
      acquire(*block_, *warp_, heard_in_block);
      warp_->heard = heard;
      warp_->heard_in_block = heard_in_block;
    }
    tell_lane(heard);
    tell_lane(heard_in_block);
  }
  if (access == Access::volatile_read) return;
  const std::uint32_t lane = 1u << thread_->lane;
  const bool releases = order >= __ATOMIC_RELEASE;
  if (releases || (warp_->fenced & lane) != 0) {
    warp_->released_to_all = releases || (warp_->fenced_for_all & lane) != 0;
    warp_->fenced &= ~lane;
    warp_->fenced_for_all &= ~lane;
    const std::uint32_t upto = releases ? clock_now() : warp_->fence_clock[thread_->lane];
    flush(*block_, *warp_, false);
    warp_->released = knowledge(upto);
    tick(*launch_, *block_, *warp_);
  }
  if (warp_->released == nullptr) return;
  const std::lock_guard lock(flags.mutex);
  LaunchRecord::Flag& flag = flags.at[address];
  if (warp_->released_to_all) {
    flag.released = join(flag.released, warp_->released);
  } else {
    if (flag.block != block_->number) flag.in_block = nullptr;
    flag.block = block_->number;
    flag.in_block = join(flag.in_block, warp_->released);
  }
}

void before_atomic(const void* address, std::size_t bytes, Access access, int order,
                   std::uintptr_t site, bool compares) noexcept {
  this_worker->recorder()->before_atomic(reinterpret_cast<std::uintptr_t>(address),
                                         std::countr_zero(bytes), access, order, site, compares);
}

void fence(bool device) noexcept {
  if (tracer.last != nullptr) this_worker->recorder()->fence(device);
}

}  // namespace rung::simt::record
