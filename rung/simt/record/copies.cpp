// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies: determines which threads may access the copied data.
//
// The data of a bulk copy is available to threads that have waited for its mbarrier, and to threads
// that have synchronized with such a thread since; synchronizing with the issuing thread by a block
// barrier does not suffice. A block's copies are therefore numbered, the numbers are acquired like
// the clocks of its warps, and shadow memory records a copy's writes under its number.
#include <memory>
#include <utility>
#include <vector>

#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {

Agent Recorder::agent(const Place& place) const {
  return {block_, warp_, thread_->lane, clock_now(), site_of(place), 0, block_->copy_era};
}

void Recorder::copied(const Agent& agent, const void* address, std::size_t bytes, Access access) {
  if (!checking_ || bytes == 0) return;
  if (agent.copy_era != agent.block->copy_era) return;  // the number belongs to an earlier era
  known_.reset();
  generic_ = agent.generic;
  auto at = reinterpret_cast<std::uintptr_t>(address);
  // When a copy lands, another thread may be running, and the issuing thread may have exited.
  const auto warp = static_cast<std::size_t>(agent.warp - agent.block->warps.data());
  const Thread* const running =
      std::exchange(thread_, &agent.block->block->threads[warp * warp_lanes + agent.lane]);
  Step step;
  Target target;
  step.site = agent.site;
  step.access = access;
  step.site_index = site_index(agent.site);
  // Clocks of steps are relative to the warp's clock.
  step.clock = agent.clock - agent.warp->clock;
  for (const std::uintptr_t end = at + bytes; at < end;) {
    step.log_size = 4;
    while (at % (1u << step.log_size) != 0 || at + (1u << step.log_size) > end) --step.log_size;
    if (target.where == Where::nowhere || step.last_unit == 0) {
      place(step, target, at, 1u << step.log_size);
    }
    Request request{step, target};
    request.lanes = 1u << agent.lane;
    request.units[agent.lane] = static_cast<std::uint32_t>((at - step.base) >> step.log_size);
    request.copy = agent.copy;
    if (!agent.block->flights.empty() && is_by_engine(access)) {
      check_flights(*agent.block, *agent.warp, request);
    }
    if (is_source(access)) note_sources(*agent.block, *agent.warp, request);
    if (target.where != Where::nowhere) check_lanes(*agent.block, *agent.warp, request);
    if (keeps_footprint_) footprint_.note(request);
    at += 1u << step.log_size;
  }
  thread_ = running;
  generic_ = false;
}

Agent Recorder::start_copy(const Place& place, const CopyRange& from, bool again, bool by_threads) {
  const bool starts = from.bytes != 0 && !(again && !block_->loads.empty());
  if (checking_ && starts) mark_issue();
  Agent started = agent(place);
  if (!checking_) return started;
  if (by_threads) thread_copies_.insert(site_index(started.site));
  launch_->sampling.give_up();  // fingerprints do not include accesses of bulk copies
  if (block_->copies.size() == Cell::max_clock) {
    // Overflow of the copy number: clears the history, as a clock overflow does.
    launch_->new_era();
    for (const auto& block : block_->block->cluster->blocks) {
      ++block->record->era;
      block->record->objects.clear();
    }
    for (WarpRecord& warp : block_->warps) warp.known.copies = {};
    block_->copies.clear();
    block_->loads.clear();
    ++block_->copy_era;
  }
  block_->copies.push_back(started.clock);
  started.copy = static_cast<std::uint32_t>(block_->copies.size());
  started.copy_era = block_->copy_era;
  if (starts) {
    start_load(place, from, started.copy);
  } else if (from.bytes != 0 && !block_->loads.empty()) {
    ++block_->loads.back().copies;
  }
  return started;
}

void Recorder::landed(const Agent& agent, Block& owner, const void* barrier) {
  if (agent.copy == 0) return;
  auto clocks = std::make_shared<Clocks>();
  clocks->copies.add(agent.copy);
  std::vector<VectorClock::Entry> entry;
  entry.emplace_back(agent.block->number, std::move(clocks));
  VectorClockRef& released = owner.record->objects[barrier].released;
  released = join(released, std::make_shared<const VectorClock>(std::move(entry)));
}

}  // namespace rung::simt::record
