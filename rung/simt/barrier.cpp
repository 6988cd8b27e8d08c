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
  const bool votes = barrier.reduction != BlockReduction::none;
  barrier = Barrier{};
  const auto release_to = [&](auto add) {
    for (Thread& thread : block.threads) {
      if (thread.wait != Wait::barrier || thread.barrier != id) continue;
      if (votes) thread.answer = answer;
      thread.wait = Wait::none;
      thread.met_block = id == 0;
      add(thread);
    }
  };
  if (order_.kind == ThreadOrder::Kind::forward) {
    release_to([this](Thread& thread) { push_back(thread); });
    poll_occasionally();
    return;
  }
  std::vector<Thread*>& released = gather();
  release_to([&](Thread& thread) { released.push_back(&thread); });
  release_gathered(block, false);
}

[[gnu::always_inline]] inline bool Worker::join_barrier(Place place, Fiber*& from, Fiber*& to) {
  if (launch_ == nullptr || recorder_ != nullptr || sliced_count_ != 0) return false;
  if (ready_begin_ == ready_end_) return false;
  Thread& self = *current_;
  Block& block = *self.block;
  Barrier& barrier = block.barriers[0];
  if (barrier.arrived == 0 || barrier.arrived + 1 >= block.live) return false;
  if (barrier.expected != 0 || barrier.reduction != BlockReduction::none) return false;
  if (std::memcmp(&barrier.place, &place, sizeof(Place)) != 0) return false;
  Thread& next = *ready_[ready_begin_ & ready_mask_];
  if (next.fiber == nullptr || next.block != &block) return false;
  if (exceptions_->any() || next.fiber->exceptions.any()) return false;
  ++barrier.arrived;
  self.wait = Wait::barrier;
  self.barrier = 0;
  self.operation = "__syncthreads";
  self.place = place;
  from = self.fiber;
  to = next.fiber;
  // Prefetches as next_ready() does, and the frames of a kernel, too.
  if (ready_end_ - ++ready_begin_ > 1) {
    __builtin_prefetch(ready_[(ready_begin_ + 1) & ready_mask_]);
    if (const Fiber* soon = ready_[ready_begin_ & ready_mask_]->fiber) {
      for (int line = 0; line < 4; ++line) {
        __builtin_prefetch(static_cast<const char*>(soon->context) + 64 * line);
      }
    }
  }
  make_current(next);
  return true;
}

namespace {

int wait_at_barrier(BlockReduction reduction, int predicate, Place place);

}  // namespace

int block_barrier(BlockReduction reduction, int predicate, Place place) {
#if !defined(__SANITIZE_ADDRESS__)
  // A loop of barriers is bound by the cache lines of the threads' stacks. On this path the stack
  // of a waiting thread holds nothing between the frame of the kernel and the saved registers.
  Fiber *from = nullptr, *to = nullptr;
  if (reduction == BlockReduction::none && this_worker != nullptr &&
      this_worker->join_barrier(place, from, to)) {
    return rung_simt_jump(from, to);
  }
#endif
  return wait_at_barrier(reduction, predicate, place);
}

namespace {

[[gnu::noinline]] int wait_at_barrier(BlockReduction reduction, int predicate, Place place) {
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
  return reduction == BlockReduction::none ? 0 : static_cast<int>(self.answer);
}

}  // namespace

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
