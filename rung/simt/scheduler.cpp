// SPDX-License-Identifier: Apache-2.0
// Starts, switches and ends simulated threads.
#include "rung/simt/scheduler.hpp"

#include <cstdlib>
#include <utility>

#include "rung/core/error.hpp"
#include "rung/simt/atomics.hpp"
#include "rung/simt/random.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"

namespace rung::simt {

Worker::Worker() : exceptions_(current_exceptions()) {}

Worker::~Worker() = default;

Worker& worker() {
  thread_local Worker mine;
  this_worker = &mine;
  return mine;
}

void throw_called_by_host(const char* operation) {
  throw Error(ErrorCode::internal,
              std::string(operation) + " was called by host code; only a kernel may");
}

void run_fiber(Fiber& starter) {
  arrive(starter);
  this_worker->run_threads();
}

void Worker::run_threads() {
  Fiber& self = *current_->fiber;
  for (;;) {
    run_current();
    Thread* next = finish_current();
    if (next != nullptr && next->fiber == nullptr) {
      next->fiber = &self;  // an unstarted thread: runs on this fiber, without a switch
      make_current(*next);
      continue;
    }
    fibers_.release(&self);
    if (next != nullptr) {
      switch_to(self, *next);
    } else {
      switch_fiber(self, main_, exceptions_);
    }
    // A later switch to this fiber resumes here with a new thread, possibly of another launch.
  }
}

namespace {

/// Calls a kernel whose loops may count their time slice down in r15 (rung/emulate/slices.cpp), and
/// which does not preserve that register.
[[gnu::noinline]] void call_kernel(void (*entry)(const void*), const void* arguments,
                                   [[maybe_unused]] int slice) {
#if defined(__x86_64__)
  asm volatile("movl %0, %%r15d" : : "r"(slice) : "r15");
#endif
  entry(arguments);
#if defined(__x86_64__)
  asm volatile("" : : : "r15");
#endif
}

}  // namespace

void Worker::run_current() {
  try {
    call_kernel(entry_, launch_->arguments, slice_);
    return;
  } catch (...) {
    escaped_ = std::current_exception();
    failed_position_ = current_->block->cluster->position;
  }
  abandon();  // outside the handler, so that its exception is released first
}

Thread* Worker::finish_current() {
  Thread& thread = *current_;
  memory_changed = true;  // other threads may wait for this one to exit
  if (thread.bulk_stores != 0) copies_.finish_stores(*this, thread);
  if (!thread.block->warpgroups.empty()) finish_products(thread);
  thread.wait = Wait::exited;
  thread.fiber = nullptr;
  Block& block = *thread.block;
  Cluster& cluster = *block.cluster;
  --block.live;
  --cluster.live;
  --live_;
  // Exited threads no longer count for barrier 0.
  try_release(block, 0);
  Warp& warp = *thread.warp;
  warp.exited |= 1u << thread.lane;
  if (recorder_ != nullptr) recorder_->exited(thread);
  for (std::uint32_t left = warp.waiting; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    if ((warp.waiting >> lane & 1) != 0) try_complete(warp, warp.lanes[lane]->mask);
  }
  if (cluster.arrived != 0) {
    if (thread.at_cluster && thread.cluster_phase == cluster.phase) --cluster.arrived;
    try_release(cluster);
  }
  if (block.live == 0) end_block(block);
  return next_ready();
}

void Worker::show_to_recorder() { recorder_->show(*current_); }

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
  poll_occasionally();
}

void Worker::abandon() {
  failed_ = true;
  record::AtomicOrder::release();  // abandon() skips the destructor
  switch_fiber(abandoned_, main_, exceptions_);
  std::abort();  // an abandoned thread is never resumed
}

void Worker::blame(const std::string& what, const Thread& thread, const Place* place) {
  failure_ = what + where(*launch_, thread, place);
  failed_position_ = thread.block->cluster->position;
}

void Worker::fail(std::string&& what, Place place) {
  {
    const std::string mine = std::move(what);
    blame("simulated GPU: " + mine, *current_, &place);
  }
  abandon();
}

void* shared_memory() { return running_worker("shared<Layout>()").current().block->shared; }
std::size_t shared_memory_size() {
  return running_worker("shared<Layout>()").launch().shared_bytes;
}
std::size_t shared_memory_room() { return shared_room(running_worker("shared memory").launch()); }
bool in_kernel() { return this_worker != nullptr && this_worker->busy(); }
int lane_index() { return running_worker("lane_index()").current().lane; }
void yield() { running_worker("__nanosleep").yield(YieldReason::many_atomics); }
void fail(const char* what, Place place) { running_worker("assert").fail(what, place); }

}  // namespace rung::simt
