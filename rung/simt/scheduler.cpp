// SPDX-License-Identifier: Apache-2.0
// Starting, switching and ending simulated threads.
#include "rung/simt/scheduler.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "rung/core/error.hpp"
#include "rung/simt/atomics.hpp"
#include "rung/simt/random.hpp"

namespace rung::simt {

constinit thread_local uint3 thread_index{};
constinit thread_local uint3 block_index{};
constinit thread_local dim3 block_extent{};
constinit thread_local dim3 grid_extent{};
constinit thread_local int atomics_left = atomics_before_yield;

constinit thread_local Worker* this_worker = nullptr;

Block::~Block() { ::operator delete(shared, std::align_val_t{shared_alignment}); }

Worker::Worker() : fibers_(&Worker::fiber_main), exceptions_(current_exceptions()) {}

Worker& worker() {
  thread_local Worker mine;
  this_worker = &mine;
  return mine;
}

void throw_called_by_host(const char* operation) {
  throw Error(ErrorCode::internal,
              std::string(operation) + " was called by host code; only a kernel may");
}

void Worker::prepare(Block& block, std::uint64_t index) {
  const dim3 grid = launch_->grid;
  const dim3 extent = launch_->block;
  block.index = {static_cast<unsigned>(index % grid.x),
                 static_cast<unsigned>(index / grid.x % grid.y),
                 static_cast<unsigned>(index / grid.x / grid.y)};
  const std::size_t count = std::size_t{extent.x} * extent.y * extent.z;
  block.threads.resize(count);
  block.warps.assign((count + warp_lanes - 1) / warp_lanes, Warp{});
  for (Barrier& barrier : block.barriers) barrier = Barrier{};
  block.live = static_cast<int>(count);
  block.random = mix(order_.seed + mix(index + 1));
  uint3 position{};
  for (std::size_t i = 0; i < count; ++i) {
    Thread& thread = block.threads[i];
    thread.fiber = nullptr;
    thread.block = &block;
    thread.warp = &block.warps[i / warp_lanes];
    thread.index = position;
    thread.lane = static_cast<int>(i % warp_lanes);
    thread.wait = Wait::none;
    thread.copies.clear();
    thread.copy_group = 0;
    thread.warp->lanes[thread.lane] = &thread;
    if (++position.x == extent.x) {
      position.x = 0;
      if (++position.y == extent.y) {
        position.y = 0;
        ++position.z;
      }
    }
  }
  // The last warp may be short: lanes that never were count as exited.
  if (const std::size_t rest = count % warp_lanes; rest != 0) {
    block.warps.back().exited = ~((1u << rest) - 1);
  }

  // Grown in whole alignments; at least one, so that shared_address() has a base.
  const std::size_t need = (launch_->shared_bytes / shared_alignment + 1) * shared_alignment;
  if (need > block.shared_capacity) {
    ::operator delete(block.shared, std::align_val_t{shared_alignment});
    block.shared = nullptr;
    block.shared_capacity = 0;
    block.shared =
        static_cast<std::byte*>(::operator new(need, std::align_val_t{shared_alignment}));
    block.shared_capacity = need;
  }
  std::memset(block.shared, poison, launch_->shared_bytes);
}

void Worker::run(const Launch& launch, ThreadOrder order, const std::uint64_t* indices,
                 std::size_t count) {
  if (busy()) throw Error(ErrorCode::internal, "simulated GPU: a kernel cannot launch a kernel");
  struct Idle {  // on every way out
    Worker& worker;
    ~Idle() { worker.launch_ = nullptr; }
  } idle{*this};
  launch_ = &launch;
  order_ = order;
  block_extent = launch.block;
  grid_extent = launch.grid;
  while (blocks_.size() < count) blocks_.push_back(std::make_unique<Block>());
  resident_ = count;
  live_ = 0;
  for (std::size_t i = 0; i < count; ++i) {
    prepare(*blocks_[i], indices[i]);
    live_ += static_cast<std::uint64_t>(blocks_[i]->live);
  }
  threads_ = live_;
  grid_arrived_ = 0;
  current_ = nullptr;
  failed_ = false;
  escaped_ = nullptr;
  atomics_left = atomics_before_yield;

  std::size_t capacity = 1;
  while (capacity < threads_) capacity *= 2;
  if (ready_.size() < capacity) ready_.resize(capacity);
  ready_mask_ = ready_.size() - 1;
  ready_begin_ = ready_end_ = 0;
  for (std::size_t i = 0; i < count; ++i) {
    gathered_.clear();
    for (Thread& thread : blocks_[i]->threads) gathered_.push_back(&thread);
    release_gathered(*blocks_[i], false);
  }

  switch_to(main_, *next_ready());
  // Back here: every thread has ended, or one has failed.
  if (failed_) {
    fibers_.restart_all();
    if (escaped_ != nullptr) rethrow_escaped();
    throw Error(ErrorCode::device, failure_);
  }
}

void Worker::check_stacks(const Launch& launch) {
  if (fibers_.intact()) return;
  fibers_.restart_all();
  throw Error(ErrorCode::device,
              "simulated GPU: stack overflow: the kernel's local variables do not fit the stack of "
              "a simulated thread\n  kernel " +
                  symbol_name(launch.kernel));
}

void Worker::switch_to(Fiber& from, Thread& next) {
  if (next.fiber == nullptr) next.fiber = fibers_.acquire();
  make_current(next);
  switch_fiber(from, *next.fiber, exceptions_);
}

void Worker::fiber_main(boost::context::detail::transfer_t arrival) {
  arrive(arrival);
  Worker& worker = *this_worker;
  Fiber& self = *worker.current_->fiber;
  for (;;) {
    worker.run_current();
    Thread* next = worker.finish_current();
    if (next != nullptr && next->fiber == nullptr) {
      next->fiber = &self;  // an unstarted thread: no need to switch
      worker.make_current(*next);
      continue;
    }
    worker.fibers_.release(&self);
    if (next != nullptr) {
      worker.switch_to(self, *next);
    } else {
      switch_fiber(self, worker.main_, worker.exceptions_);
    }
    // Here again with a thread to start, perhaps of another launch.
  }
}

void Worker::run_current() {
  try {
    launch_->entry(launch_->arguments);
    return;
  } catch (...) {
    escaped_ = std::current_exception();
  }
  abandon();  // outside the handler: its exception must be let go of first
}

Thread* Worker::finish_current() {
  Thread& thread = *current_;
  thread.wait = Wait::exited;
  thread.fiber = nullptr;
  Block& block = *thread.block;
  --block.live;
  --live_;
  // Those who have exited are no longer waited for.
  try_release(block, 0);
  Warp& warp = *thread.warp;
  warp.exited |= 1u << thread.lane;
  for (std::uint32_t left = warp.waiting; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    if ((warp.waiting >> lane & 1) != 0) try_complete(warp, warp.lanes[lane]->mask);
  }
  return next_ready();
}

Thread* Worker::next_ready() {
  if (ready_begin_ == ready_end_) {
    if (live_ == 0) return nullptr;
    if (!release_active_masks()) {
      blame_deadlock();
      abandon();
    }
  }
  // With a thousand stacks in turn each is cold: fetch those of the threads that come next.
  if (ready_end_ - ready_begin_ > 2) {
    __builtin_prefetch(ready_[(ready_begin_ + 2) & ready_mask_]);
    if (const Fiber* soon = ready_[(ready_begin_ + 1) & ready_mask_]->fiber) {
      __builtin_prefetch(soon->context);
      __builtin_prefetch(static_cast<const char*>(soon->context) + 64);
    }
  }
  return ready_[ready_begin_++ & ready_mask_];
}

void Worker::wait(Wait reason, const char* operation, Place place) {
  Thread& self = *current_;
  self.wait = reason;
  self.operation = operation;
  self.place = place;
  Thread& next = *next_ready();
  if (&next == &self) {
    make_current(self);
  } else {
    switch_to(*self.fiber, next);
  }
}

void Worker::yield() {
  atomics_left = atomics_before_yield;
  if (ready_begin_ == ready_end_ && !release_active_masks()) return;
  Thread& self = *current_;
  push_back(self);
  switch_to(*self.fiber, *next_ready());
}

void Worker::release_gathered(Block& block, bool first) {
  std::vector<Thread*>& threads = gathered_;
  if (order_.kind == ThreadOrder::Kind::reverse) {
    for (std::size_t i = 0; i < threads.size() / 2; ++i) {
      std::swap(threads[i], threads[threads.size() - 1 - i]);
    }
  } else if (order_.kind == ThreadOrder::Kind::random) {
    for (std::size_t i = threads.size(); i > 1; --i) {
      std::swap(threads[i - 1], threads[next_random(block.random) % i]);
    }
  }
  if (first) {
    for (std::size_t i = threads.size(); i > 0; --i) push_front(*threads[i - 1]);
  } else {
    for (Thread* thread : threads) push_back(*thread);
  }
}

void Worker::abandon() {
  failed_ = true;
  switch_fiber(abandoned_, main_, exceptions_);
  std::abort();  // nobody switches back to an abandoned thread
}

void Worker::blame(const std::string& what, const Thread& thread, const Place* place) {
  failure_ = what + where(*launch_, thread, place);
}

void Worker::rethrow_escaped() {
  const std::exception_ptr escaped = std::exchange(escaped_, nullptr);
  std::string what = "an exception that is no std::exception";
  try {
    std::rethrow_exception(escaped);
  } catch (const std::exception& exception) {
    what = exception.what();
    std::throw_with_nested(Error(ErrorCode::device, "simulated GPU: the kernel threw: " + what +
                                                        where(*launch_, *current_, nullptr)));
  } catch (...) {
    std::throw_with_nested(Error(ErrorCode::device, "simulated GPU: the kernel threw " + what +
                                                        where(*launch_, *current_, nullptr)));
  }
}

void* shared_memory() { return running_worker("shared<Layout>()").current().block->shared; }
std::size_t shared_memory_size() {
  return running_worker("shared<Layout>()").launch().shared_bytes;
}
int lane_index() { return running_worker("lane_index()").current().lane; }
void yield() { running_worker("__nanosleep").yield(); }

void fail(const char* what, Place place) {
  Worker& here = running_worker("assert");
  here.blame(std::string("simulated GPU: ") + what, here.current(), &place);
  here.abandon();
}

}  // namespace rung::simt
