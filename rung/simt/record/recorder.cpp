// SPDX-License-Identifier: Apache-2.0
// Recorder: start and end of launches and blocks.
#include "rung/simt/record/recorder.hpp"

#include <algorithm>
#include <utility>

#include "rung/simt/launch_state.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {

Recorder::Recorder(Worker& worker) : worker_(worker) {}
Recorder::~Recorder() = default;

void Recorder::begin(LaunchRecord& launch) {
  launch_ = &launch;
  counting_ = launch.counting;
  checking_ = launch.checking;
  // Steps of earlier launches refer to memory that may have been freed.
  idle_.clear();
  for (const auto& list : lists_) {
    list->reset(true);
    idle_.push_back(list.get());
  }
  ahead_.clear();
  tracer.written = nullptr;
  numbers_.clear();
  told_.clear();
  thread_copies_.clear();
  guess_places_.clear();
  counts_.clear();
  thread_ = nullptr;
  block_ = nullptr;
  warp_ = nullptr;
  checked_ = nullptr;
  last_region_ = nullptr;
  work_ = {};
  requests_ = 0;
  written_.clear();
  suspicion_ = {};
  overlaps_.begin(checking_ ? launch.launch.data : nullptr);
  keeps_footprint_ = launch.launch.footprint != nullptr;
  footprint_.clear();
  samples_ = launch.sampling.possible();
  ranges_.clear();
  follows_ = false;
  ways_.resize(std::size_t{RequestList::room} + warp_lanes);
  std::fill(std::begin(stands_), std::end(stands_), 0);
  together_ = 0;
}

void Recorder::end() {
  tracer.last = nullptr;
  warp_ = nullptr;
  // Converts accesses per thread to requests of whole warps, rounding up.
  for (SiteCount& one : counts_) {
    one.counters.local_requests = (one.local_accesses + warp_lanes - 1) / warp_lanes;
  }
  launch_->add(counts_, work_, requests_, written_, overlaps_);
  if (keeps_footprint_) launch_->add(footprint_);
  if (samples_) launch_->add(ranges_);
}

void Recorder::prepare(Block& block) {
  if (block.record == nullptr) block.record = std::make_unique<BlockRecord>();
  BlockRecord& record = *block.record;
  const dim3& grid = launch_->launch.grid;
  const std::uint64_t linear =
      block.index.x +
      std::uint64_t{grid.x} * (block.index.y + std::uint64_t{grid.y} * block.index.z);
  record.block = &block;
  record.number = static_cast<std::uint32_t>(linear) & block_number_mask;
  record.interval = 0;
  record.partial = record.fenced = false;
  record.proxy_known = {};
  record.copies.clear();
  record.objects.clear();
  record.flights.clear();
  record.loads.clear();
  record.sources.clear();
  record.sources_begin = ~std::uintptr_t{0};
  record.sources_end = 0;
  record.remote_uses.clear();
  record.cluster_phase = 0;
  record.flight_orders.clear();
  record.fingerprint = {};
  for (Synchronizer& barrier : record.barriers) barrier = {};
  record.warps.resize(block.warps.size());
  for (std::size_t i = 0; i < record.warps.size(); ++i) {
    WarpRecord& warp = record.warps[i];
    warp.list = nullptr;
    warp.clock = 1;
    warp.launched = ~block.warps[i].exited;
    warp.fenced = warp.fenced_for_all = warp.ahead = 0;
    warp.at_barrier = 0;
    warp.released_to_all = warp.compared = false;
    warp.diverged = warp.any_told = false;
    warp.visits = 0;
    warp.requests_so_far = 0;
    warp.trace.clear();
    warp.waits = {};
    warp.remote = warp.released = warp.acquired = warp.acquired_in_block = nullptr;
    warp.pending = warp.last_pending = nullptr;
    warp.pending_lanes = 0;
    warp.exchanges = nullptr;
    warp.lessons.clear();
    warp.remote_before = nullptr;
    warp.stale_wait = warp.early_wait = 0;
    std::fill(std::begin(warp.fence_clock), std::end(warp.fence_clock), 0);
    warp.known = {};
    std::fill(std::begin(warp.synced), std::end(warp.synced), 0);
    std::fill(std::begin(warp.told), std::end(warp.told), 0);
    std::fill(std::begin(warp.proxy_clock), std::end(warp.proxy_clock), 0);
    std::fill(std::begin(warp.cursors), std::end(warp.cursors), nullptr);
    std::fill(std::begin(warp.entered), std::end(warp.entered), 0);
    warp.together = 0;
    std::fill(std::begin(warp.stands), std::end(warp.stands), WarpRecord::Stand());
  }
  ++record.era;
  if (checking_ && shared_room(launch_->launch) != 0) {
    if (record.shadow.bytes < shared_room(launch_->launch)) {
      record.shadow = Shadow(block.shared_capacity);
      record.initialized = Initialized(block.shared_capacity);
      record.era = 1;
    }
    record.initialized.set(0, shared_room(launch_->launch), false);
  }
  warp_ = nullptr;  // may belong to the previous use of this block
}

bool Recorder::is_news(Kind kind, std::uint16_t site, std::uint16_t other, GuessPlace there,
                       std::uint8_t way) {
  return told_.emplace(kind, site, other, there, way).second;
}

void Recorder::end_block(BlockRecord& block) {
  std::uint64_t visits = 0;
  Trips longest;
  for (WarpRecord& warp : block.warps) {
    flush(block, warp);
    ++work_.warps;
    work_.divergent_warps += warp.diverged ? 1 : 0;
    visits += warp.visits;
    work_.longest_warp = std::max(work_.longest_warp, warp.visits);
    warp.waits.settle();
    if (warp.waits.so_far().all() > longest.all()) longest = warp.waits.so_far();
  }
  if (checking_) {
    end_remote(block);
    // The launch fails if copies are in flight into the memory of a block that ends.
    if (block.block->bulk_loads == 0) end_balances(block);
  }
  if (samples_) launch_->sampling.note(block.block->index, block.fingerprint);
  work_.visits += visits;
  work_.longest_block = std::max(work_.longest_block, visits);
  work_.waits.longest += longest;
  if (counting_) keep_traces(block);
}

}  // namespace rung::simt::record
