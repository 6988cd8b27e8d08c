// SPDX-License-Identifier: Apache-2.0
// Barriers of a block and of a grid.
//
// __syncthreads() is barrier 0 with all threads that have not exited, as on compute capability 7.0
// and later. Arrivals are counted per thread, regardless of the call site. Whole warps may arrive
// from different call sites, as PTX allows; lanes of one warp may not, and a checking session
// reports such lanes.
#include <cstring>

#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

/// Fails the launch because threads used one phase of barrier 0 with different thread counts or
/// different reductions, which is undefined in PTX.
[[gnu::noinline, gnu::cold, noreturn]] void fail_mixed(Worker& here, const char* name,
                                                       Place place) {
  here.blame(std::string("simulated GPU: mixed barrier: this thread is at ") + name +
                 " while other threads of its block wait in another operation of barrier 0 at " +
                 to_string(here.current().block->barriers[0].place),
             here.current(), &place);
  here.abandon();
}

/// Validates the arguments of a named barrier and arrives at it.
void join_named(Worker& here, int id, int threads, const Place& place) {
  Thread& self = here.current();
  if (id < 0 || id >= named_barriers) {
    here.blame("simulated GPU: barrier " + std::to_string(id) +
                   " does not exist, accepted are 0 to " + std::to_string(named_barriers - 1),
               self, &place);
    here.abandon();
  }
  if (threads <= 0 || threads % warp_lanes != 0) {
    here.blame("simulated GPU: a barrier of " + std::to_string(threads) +
                   " threads, accepted are multiples of 32",
               self, &place);
    here.abandon();
  }
  Barrier& barrier = self.block->barriers[id];
  if (barrier.arrived != 0 && barrier.expected != threads) {
    here.blame("simulated GPU: barrier " + std::to_string(id) + " is joined for " +
                   std::to_string(threads) + " threads while others wait there for " +
                   (barrier.expected == 0 ? "the whole block" : std::to_string(barrier.expected)),
               self, &place);
    here.abandon();
  }
  barrier.expected = threads;
  barrier.reduction = BlockReduction::none;
  ++barrier.arrived;
}

}  // namespace

bool same_place(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

void Worker::try_release(Block& block, int id) {
  Barrier& barrier = block.barriers[id];
  const int expected = barrier.expected == 0 ? block.live : barrier.expected;
  if (barrier.arrived == 0 || barrier.arrived < expected) return;
  std::uint32_t answer = 0;
  switch (barrier.reduction) {
    case BlockReduction::none:
      break;
    case BlockReduction::count:
      answer = static_cast<std::uint32_t>(barrier.voted);
      break;
    case BlockReduction::all:
      answer = barrier.voted == barrier.arrived ? 1 : 0;
      break;
    case BlockReduction::any:
      answer = barrier.voted != 0 ? 1 : 0;
      break;
  }
  if (recorder_ != nullptr) {
    if (barrier.places_differ) note_split_warps(block);
    if (barrier.expected == 0) {
      recorder_->block_met(block, barrier.place);
    } else {
      recorder_->named_barrier_met(block, id);
    }
  }
  barrier = Barrier{};
  std::vector<Thread*>& released = gather();
  for (Thread& thread : block.threads) {
    if (thread.wait != Wait::barrier || thread.barrier != id) continue;
    thread.answer = answer;
    thread.wait = Wait::none;
    thread.met_block = id == 0;
    released.push_back(&thread);
  }
  release_gathered(block, false);
}

int block_barrier(BlockReduction reduction, int predicate, Place place) {
  static constexpr const char* names[] = {"__syncthreads", "__syncthreads_count",
                                          "__syncthreads_and", "__syncthreads_or"};
  const char* name = names[static_cast<int>(reduction)];
  Worker& here = running_worker(name);
  Thread& self = here.current();
  Barrier& barrier = self.block->barriers[0];
  if (barrier.arrived == 0) {
    barrier.place = place;
    barrier.reduction = reduction;
  } else if (barrier.expected != 0 || barrier.reduction != reduction) {
    fail_mixed(here, name, place);
  } else if (!same_place(barrier.place, place)) {
    barrier.places_differ = true;
  }
  ++barrier.arrived;
  if (predicate != 0) ++barrier.voted;
  self.wait = Wait::barrier;  // set before the release, which wakes all waiting threads
  self.barrier = 0;
  self.operation = name;
  self.place = place;
  if (here.recorder() != nullptr) here.recorder()->block_arrived();
  if (barrier.arrived >= self.block->live) here.try_release(*self.block, 0);
  here.wait(self.wait, name, place);
  return static_cast<int>(self.answer);
}

void named_barrier_sync(int id, int threads, Place place) {
  Worker& here = running_worker("bar.sync");
  Thread& self = here.current();
  join_named(here, id, threads, place);
  self.barrier = static_cast<std::uint8_t>(id);
  self.block->barriers[id].place = place;
  self.wait = Wait::barrier;
  here.try_release(*self.block, id);
  here.wait(self.wait, "bar.sync", place);
}

void named_barrier_arrive(int id, int threads, Place place) {
  Worker& here = running_worker("bar.arrive");
  join_named(here, id, threads, place);
  Block& block = *here.current().block;
  block.barriers[id].place = place;
  if (here.recorder() != nullptr) here.recorder()->named_barrier_arrived(block, id, place);
  here.try_release(block, id);
}

void Worker::arrive_at_grid(Place place) {
  if (!launch_->cooperative) {
    blame("simulated GPU: grid_sync() in a launch that is not cooperative", *current_, &place);
    abandon();
  }
  current_->wait = Wait::grid;
  if (++grid_arrived_ == threads_) {
    grid_arrived_ = 0;
    if (recorder_ != nullptr) recorder_->grid_met(resident_);
    for_each_block([&](Block& block) {
      std::vector<Thread*>& released = gather();
      for (Thread& thread : block.threads) {
        thread.wait = Wait::none;
        released.push_back(&thread);
      }
      release_gathered(block, false);
    });
  }
  wait(current_->wait, "grid_sync", place);
}

void grid_barrier(Place place) { running_worker("grid_sync").arrive_at_grid(place); }

}  // namespace rung::simt
