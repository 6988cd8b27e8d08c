// SPDX-License-Identifier: Apache-2.0
// The scheduler of the simulated GPU: an OS thread's worker runs the threads of its resident blocks
// as fibers, one at a time, each until it waits or ends. Internal to simt/.
//
// A fiber that finishes a thread takes the next unstarted one without a switch, so that a kernel
// that never waits runs all its threads on one stack. A thread that waits jumps straight to the
// next ready one; there is no dispatcher in between.
//
// A worker runs one cluster after another (a cluster is one block unless the launch says more).
// Only when all threads that could run do nothing but look whether something has changed does it
// admit the next, up to what the device holds: so kernels whose blocks wait for each other get on
// whatever the order, and all others keep the cache to one block.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "rung/simt/atomics.hpp"
#include "rung/simt/block.hpp"
#include "rung/simt/copy_engine.hpp"
#include "rung/simt/fiber.hpp"
#include "rung/simt/launch_state.hpp"
#include "rung/simt/simulator.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt::record {
class LaunchRecord;
class Recorder;
}  // namespace rung::simt::record

namespace rung::simt {

// The built-in variables of words.hpp as the scheduler writes them.
extern RUNG_API constinit thread_local uint3 thread_index __asm__("rung_simt_thread_index")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local uint3 block_index __asm__("rung_simt_block_index")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local dim3 block_extent __asm__("rung_simt_block_extent")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local dim3 grid_extent __asm__("rung_simt_grid_extent")
    __attribute__((tls_model("initial-exec")));

// The shared memory of the block that runs, and the launch's own data, for code that was rewritten
// by `rung emulate`.
extern RUNG_API constinit thread_local std::byte* shared_base __asm__("rung_simt_shared")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local void* launch_data __asm__("rung_simt_launch_data")
    __attribute__((tls_model("initial-exec")));

/// Why a thread gives way, and how much that speaks for its waiting in vain: it has done many
/// loads, or hundreds of atomics, or slept; or it has seen exactly what it saw before.
enum class Look : int { many_loads = 4, many_atomics = 16, in_vain = 64 };

class Worker {
 public:
  Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Runs clusters of the launch until there are none left, or one has failed; what went wrong is
  /// recorded in the launch's state.
  void run(LaunchState& state);
  [[nodiscard]] bool busy() const { return launch_ != nullptr; }

  /// What a fiber does: one thread after another, for ever.
  [[noreturn]] void run_threads();

  // What follows is for the operations that kernels call.
  [[nodiscard]] Thread& current() const { return *current_; }
  [[nodiscard]] const Launch& launch() const { return *launch_; }
  [[nodiscard]] ThreadOrder::Kind order() const { return order_.kind; }
  [[nodiscard]] CopyEngine& copies() { return copies_; }
  /// Suspends the current thread until it is made ready again.
  void wait(Wait reason, const char* operation, Place place) {
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
  /// Lets others run. A thread that calls this over and over is waiting for something.
  void yield(Look look);
  /// The current thread has read a clock: a loop with a deadline ends though nothing changes.
  void note_clock_read() { ++clock_reads_; }
  /// Suspends the current thread until no other can run that is not in step with it.
  void keep_step();
  /// Suspends the current thread until the recorder has seen the rest of its warp.
  void wait_for_lanes();
  /// Null while nobody records.
  [[nodiscard]] record::Recorder* recorder() const { return recorder_; }
  void make_ready(Thread& thread) { push_back(thread); }
  /// Makes the gathered threads ready, in the launch's order: before the others or after.
  std::vector<Thread*>& gather() {
    gathered_.clear();
    return gathered_;
  }
  void release_gathered(Block& block, bool first);
  /// Releases the barrier if all that it waits for have arrived.
  void try_release(Block& block, int barrier);
  void arrive_at_grid(Place place);
  void try_release(Cluster& cluster);
  /// Wakes those that wait for a phase of this mbarrier that has completed.
  void release_mbarrier(Block& owner, const std::uint64_t* barrier);
  /// Completes the collective of these lanes if all have come. Each goes on later.
  void try_complete(Warp& warp, std::uint32_t mask);
  /// Notes why the launch fails; abandon() comes next.
  void blame(const std::string& what, const Thread& thread, const Place* place);
  /// Gives up the launch. Does not unwind: device code cannot catch, nor can noexcept code stop it.
  /// Nothing that owns memory may be alive in the caller, which is why blame() comes apart.
  [[noreturn]] void abandon();
  /// Both at once, of the current thread. `what` is gone before the switch; long strings that it
  /// was combined from would not be: those callers blame() and then abandon().
  [[noreturn]] void fail(std::string&& what, Place place);

 private:
  // Starting and ending, in residency.cpp.
  bool admit();
  void prepare(Cluster& cluster, std::uint64_t position);
  void prepare(Block& block, uint3 index);
  void end_block(Block& block);
  void reserve_ready(std::uint64_t threads);
  void begin_recording(record::LaunchRecord& record);
  /// Decides whether the block that is admitted now is recorded.
  void choose_recording(std::uint64_t position);
  void record_failure();
  void check_stacks();
  // Threads that wait by looking, in waiting.cpp.
  /// Where nothing is ready: false when no thread can ever go on.
  bool find_work();
  bool admit_another();
  void wake_all();
  void step();
  void look_now_and_then();
  void note_progress();
  /// Returns whether the sleeping threads have stood still for a while: each round of looks leaves
  /// their stacks as they were, so that no further round would differ.
  bool stands_still();
  [[nodiscard]] std::uint64_t digest_of_sleepers() const;
  /// A thread ends: it has waited for what it asked of the tensor cores, or the launch fails.
  void finish_products(const Thread& thread);
  void blame_deadlock();

  void run_current();
  Thread* finish_current();
  /// False: every thread has ended. Where none can go on it lands copies, or fails.
  bool find_ready();
  bool release_active_masks();
  void note_parting(Warp& warp, std::uint32_t mask, std::uint32_t lanes, bool apart);
  void note_split_warps(const Block& block);
  /// Takes the first of those that can go on; null when every thread has ended.
  Thread* next_ready() {
    if (ready_begin_ == ready_end_ && !find_ready()) return nullptr;
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
  std::exception_ptr take_escaped();

  /// Calls f(block) for each resident block.
  template <class F>
  void for_each_block(F f) {
    for (const auto& cluster : resident_) {
      for (const auto& block : cluster->blocks) f(*block);
    }
  }

  void make_current(Thread& thread) {
    if (thread.block != shown_block_) {
      shown_block_ = thread.block;
      block_index = thread.block->index;
      shared_base = thread.block->shared;
    }
    current_ = &thread;
    thread_index = thread.index;
    thread.wait = Wait::none;
    if (recorder_ != nullptr) [[unlikely]]
      show_to_recorder();
  }
  void show_to_recorder();
  void switch_to(Fiber& from, Thread& next) {
    if (next.fiber == nullptr) next.fiber = fibers_.acquire();
    make_current(next);
    switch_fiber(from, *next.fiber, exceptions_);
  }

  [[nodiscard]] std::uint64_t ready_count() const { return ready_end_ - ready_begin_; }
  void push_back(Thread& thread) { ready_[ready_end_++ & ready_mask_] = &thread; }
  void push_front(Thread& thread) { ready_[--ready_begin_ & ready_mask_] = &thread; }

  FiberPool fibers_;
  Fiber main_;
  Fiber abandoned_;  // where a failed thread was left, which nobody needs
  Fiber::Exceptions* exceptions_;
  LaunchState* state_ = nullptr;
  const Launch* launch_ = nullptr;
  ThreadOrder order_;
  LaunchState::Claim claim_;
  LaunchState::Waiting waiting_;
  std::vector<std::unique_ptr<Cluster>> resident_;
  std::vector<std::unique_ptr<Cluster>> idle_;
  CopyEngine copies_;
  Thread* current_ = nullptr;
  record::Recorder* recorder_ = nullptr;  // of the resident blocks; null: none is recorded
  void (*entry_)(const void* arguments) = nullptr;  // what their threads run
  std::unique_ptr<record::Recorder> own_recorder_;
  const Block* shown_block_ = nullptr;  // whose index block_index holds
  std::uint64_t live_ = 0;              // threads that have not exited, of all resident blocks
  std::uint64_t changes_ = 0;           // how often all gave way though memory had changed
  std::uint64_t threads_ = 0;           // all that were admitted since none was resident
  std::uint64_t grid_arrived_ = 0;
  std::uint64_t looks_ = 0;   // of those that are asleep, weighted
  std::uint64_t stuck_ = 0;   // looks since nothing else was left to do
  std::uint64_t rounds_ = 0;  // in which each of them looked
  std::uint64_t clock_reads_ = 0;
  std::uint64_t digest_ = 0;  // of their stacks after the last round, and of clock_reads_
  std::chrono::steady_clock::time_point still_since_;  // the first round with that digest
  std::uint64_t releases_ = 0;                         // of barriers and collectives
  std::vector<Thread*> asleep_;                        // gave way: they go on when all others wait
  std::vector<Thread*> in_step_;                       // likewise, before those that are asleep

  std::vector<Thread*> ready_;  // a ring; its indices run freely and wrap by the mask
  std::uint64_t ready_begin_ = 0, ready_end_ = 0, ready_mask_ = 0;
  std::vector<Thread*> gathered_;

  std::string failure_;
  std::uint64_t failed_position_ = 0;
  bool failed_ = false;
  std::exception_ptr escaped_;  // what a kernel threw
};

/// The calling OS thread's worker; made at its first launch.
Worker& worker();
extern RUNG_API constinit thread_local Worker* this_worker
    __attribute__((tls_model("initial-exec")));
[[noreturn]] void throw_called_by_host(const char* operation);
/// The worker if a kernel is running on it; throws Error(internal) for a call from host code.
inline Worker& running_worker(const char* operation) {
  if (this_worker == nullptr || !this_worker->busy()) throw_called_by_host(operation);
  return *this_worker;
}

/// Shared memory that is known to be used, gap included.
inline std::size_t poisoned_bytes(const Launch& launch) {
  return launch.shared_bytes + launch.shared_gap_end - launch.shared_gap_begin;
}
/// All of a block's shared memory that may be addressed.
inline std::size_t shared_room(const Launch& launch) {
  return std::max(launch.shared_bytes, launch.shared_room);
}

/// What of that a kernel may access by now.
inline std::size_t shared_extent(const Launch& launch) {
  return launch.shared_in_use == nullptr ? shared_room(launch)
                                         : __atomic_load_n(launch.shared_in_use, __ATOMIC_RELAXED);
}

std::string where(const Launch& launch, const Thread& thread, const Place* place);
std::string to_string(const Place& place);
/// Returns whether both are the same call in the source.
bool same_place(const Place& a, const Place& b);

}  // namespace rung::simt
