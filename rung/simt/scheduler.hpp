// SPDX-License-Identifier: Apache-2.0
// The scheduler of the simulated GPU: an OS thread's worker runs the threads of its resident blocks
// as fibers, one at a time, each until it waits or ends. Internal to simt/.
//
// A fiber that finishes a thread starts the next one without a switch, so that a kernel that never
// waits runs all its threads on one stack. A thread that waits switches directly to the next ready
// one; there is no dispatcher in between.
//
// A worker runs one cluster after another (a cluster is a single block by default). It admits
// another one, up to the residency limit of the device, only when all runnable threads merely poll.
// Kernels whose blocks wait for each other thus make progress under every order, and in other
// kernels the host's caches hold a single block.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
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

// The built-in variables of words.hpp, writable by the scheduler.
extern RUNG_API constinit thread_local uint3 thread_index __asm__("rung_simt_thread_index")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local uint3 block_index __asm__("rung_simt_block_index")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local dim3 block_extent __asm__("rung_simt_block_extent")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local dim3 grid_extent __asm__("rung_simt_grid_extent")
    __attribute__((tls_model("initial-exec")));

// Shared memory of the running block, and the launch's private data, for code rewritten by `rung
// emulate`.
extern RUNG_API constinit thread_local std::byte* shared_base __asm__("rung_simt_shared")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local void* launch_data __asm__("rung_simt_launch_data")
    __attribute__((tls_model("initial-exec")));

/// Reason for a yield, weighted as evidence of livelock: many loads, hundreds of atomics or a sleep
/// are weak evidence; a load that returned the same value as before is strong.
enum class YieldReason : int { many_loads = 4, many_atomics = 16, in_vain = 64 };

/// Lengths of time slices that a kernel's first unrecorded blocks try in turn, and the least time
/// of a block with each.
struct SliceTrials {
  static constexpr int lengths = 4, rounds = 3;
  int blocks = 0;  // blocks that have been timed
  int best = 0;    // the fastest length, once all rounds are over
  std::chrono::steady_clock::duration least[lengths] = {};
};
constexpr int unlimited_slice = std::numeric_limits<int>::max();

class Worker {
 public:
  Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Runs clusters of the launch until none is left or one has failed. A failure is recorded in the
  /// launch's state.
  void run(LaunchState& state);
  [[nodiscard]] bool busy() const { return launch_ != nullptr; }

  /// Runs one thread after another on the current fiber; never returns.
  [[noreturn]] void run_threads();

  // Interface of the operations that kernels call.
  [[nodiscard]] Thread& current() const { return *current_; }
  [[nodiscard]] const Launch& launch() const { return *launch_; }
  [[nodiscard]] ThreadOrder::Kind order() const { return order_.kind; }
  [[nodiscard]] CopyEngine& copies() { return copies_; }
  /// Suspends the current thread until it becomes ready.
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
  /// Yields to other threads. A thread that calls yield() repeatedly counts as waiting.
  void yield(YieldReason reason);
  /// Records that the current thread has read a clock: a loop with a deadline ends although no
  /// memory changes.
  void note_clock_read() { ++clock_reads_; }
  /// Arrives at barrier 0 on behalf of __syncthreads() by the shortest path: in a block that is not
  /// recorded, if this thread is neither the first nor the last to arrive and another one is ready.
  /// The caller must then switch from `from` to `to`. Returns false, without effect, in all other
  /// cases.
  bool join_barrier(Place place, Fiber*& from, Fiber*& to);
  /// Ends the current thread's time slice: runs the other threads of its group until their slices
  /// end. Returns the length of its next slice. In slices.cpp.
  int end_slice();
  /// Suspends the current thread until no thread outside its lockstep group is ready.
  void keep_step();
  /// Suspends the current thread until the recorder has processed the rest of its warp.
  void wait_for_lanes();
  /// Returns the recorder; null if no session records.
  [[nodiscard]] record::Recorder* recorder() const { return recorder_; }
  void make_ready(Thread& thread) { push_back(thread); }
  /// Empties the list of threads that release_gathered() makes ready, and returns it.
  std::vector<Thread*>& gather() {
    gathered_.clear();
    return gathered_;
  }
  /// Makes the gathered threads ready, in the launch's order. `first`: ahead of the threads that
  /// are already ready.
  void release_gathered(Block& block, bool first);
  /// Releases the barrier if all expected threads have arrived.
  void try_release(Block& block, int barrier);
  void arrive_at_grid(Place place);
  void try_release(Cluster& cluster);
  /// Wakes the threads that wait for a completed phase of this mbarrier.
  void release_mbarrier(Block& owner, const std::uint64_t* barrier);
  /// Completes the collective of the lanes in `mask` if all have arrived, and makes them ready.
  void try_complete(Warp& warp, std::uint32_t mask);
  /// Records the reason for a failure; the caller must then call abandon().
  void blame(const std::string& what, const Thread& thread, const Place* place);
  /// Abandons the launch without unwinding: device code cannot catch exceptions, and noexcept
  /// functions would terminate. The caller must not own memory, which would leak; hence blame() is
  /// separate.
  [[noreturn]] void abandon();
  /// Calls blame() for the current thread, then abandon(). `what` is destroyed before the switch. A
  /// caller that concatenates a message would leak the temporaries; such callers use blame() and
  /// abandon().
  [[noreturn]] void fail(std::string&& what, Place place);

 private:
  // Admission and retirement; in residency.cpp.
  bool admit();
  void prepare(Cluster& cluster, std::uint64_t position);
  void prepare(Block& block, uint3 index);
  void end_block(Block& block);
  void reserve_ready(std::uint64_t threads);
  void begin_recording(record::LaunchRecord& record);
  /// Determines whether the admitted block is recorded.
  void choose_recording(std::uint64_t position);
  void record_failure();
  void check_stacks();
  // Time slices; in slices.cpp.
  /// Selects the length of the slices of the admitted block.
  void begin_slices();
  /// Notes how long the block took, if it ran on trial.
  void end_slices();
  // Polling threads; in waiting.cpp.
  /// Makes a thread ready when none is: lands copies, admits clusters, wakes pollers. Returns false
  /// on a deadlock.
  bool find_work();
  bool admit_another();
  void wake_all();
  void step();
  void poll_occasionally();
  void note_progress();
  /// Returns true if the sleeping threads have made no progress for a while: their stacks are
  /// unchanged by a round of polls, so further rounds would not change them either.
  bool stands_still();
  [[nodiscard]] std::uint64_t digest_of_sleepers() const;
  /// Completes a thread's wgmma products when it ends; fails the launch if it has not waited for
  /// them.
  void finish_products(const Thread& thread);
  void blame_deadlock();

  void run_current();
  Thread* finish_current();
  /// Ensures that a thread is ready. Returns false if every thread has ended; fails the launch on a
  /// deadlock.
  bool find_ready();
  bool release_active_masks();
  void note_parting(Warp& warp, std::uint32_t mask, std::uint32_t lanes, bool apart);
  void note_split_warps(const Block& block);
  /// Dequeues the next ready thread; null when every thread has ended.
  Thread* next_ready() {
    if (sliced_count_ != 0) return next_sliced();
    if (ready_begin_ == ready_end_ && !find_ready()) return nullptr;
    // With a thousand stacks in rotation each is cold: prefetch those of the next threads.
    if (ready_end_ - ready_begin_ > 2) {
      __builtin_prefetch(ready_[(ready_begin_ + 2) & ready_mask_]);
      if (const Fiber* soon = ready_[(ready_begin_ + 1) & ready_mask_]->fiber) {
        __builtin_prefetch(soon->context);
        __builtin_prefetch(static_cast<const char*>(soon->context) + 64);
      }
    }
    return ready_[ready_begin_++ & ready_mask_];
  }
  Thread* next_sliced() {
    --sliced_count_;
    return sliced_[sliced_begin_++ % slice_group];
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
  Fiber abandoned_;  // context of a failed thread, never resumed
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
  record::Recorder* recorder_ = nullptr;  // recorder of the resident blocks; null: none is recorded
  void (*entry_)(const void* arguments) = nullptr;  // code that their threads run
  std::unique_ptr<record::Recorder> own_recorder_;
  const Block* shown_block_ = nullptr;  // block whose index block_index holds
  std::uint64_t live_ = 0;              // threads of all resident blocks that have not exited
  // Number of times that all threads yielded although memory had changed.
  std::uint64_t changes_ = 0;
  std::uint64_t threads_ = 0;  // threads admitted since the worker last had no resident cluster
  std::uint64_t grid_arrived_ = 0;
  std::uint64_t polls_ = 0;   // weighted polls of the sleeping threads
  std::uint64_t stuck_ = 0;   // polls since no other work was left
  std::uint64_t rounds_ = 0;  // rounds of polls by all sleeping threads
  std::uint64_t clock_reads_ = 0;
  std::uint64_t digest_ = 0;  // hash of the sleepers' stacks and clock_reads_ after the last round
  std::chrono::steady_clock::time_point still_since_;  // the first round with that digest
  std::uint64_t releases_ = 0;                         // releases of barriers and collectives
  std::vector<Thread*> asleep_;                        // yielded; resumed when all others wait
  std::vector<Thread*> in_step_;                       // in keep_step(); resumed before sleepers

  std::vector<Thread*> ready_;  // ring buffer; indices run freely and are masked on access
  std::uint64_t ready_begin_ = 0, ready_end_ = 0, ready_mask_ = 0;
  std::vector<Thread*> gathered_;

  // Threads whose time slices have ended, a ring buffer. The first threads of a group come from
  // ready_; once the group is full they run in turn until none is left.
  static constexpr unsigned slice_group = 32;
  Thread* sliced_[slice_group] = {};
  unsigned sliced_begin_ = 0, sliced_count_ = 0;
  bool sliced_full_ = false;
  int slice_ = unlimited_slice;          // length in iterations of loops
  SliceTrials* slice_trials_ = nullptr;  // those of entry_
  int trial_ = -1;                       // number of the length on trial; -1: none
  std::chrono::steady_clock::time_point trial_began_;
  std::unordered_map<const void*, SliceTrials> trials_;  // by the kernel's entry point

  std::string failure_;
  std::uint64_t failed_position_ = 0;
  bool failed_ = false;
  bool yields_early_ = false;   // the running thread yields after few atomics
  std::exception_ptr escaped_;  // exception that a kernel threw
};

/// Returns the calling OS thread's worker; the thread's first launch creates it.
Worker& worker();
extern RUNG_API constinit thread_local Worker* this_worker
    __attribute__((tls_model("initial-exec")));
[[noreturn]] void throw_called_by_host(const char* operation);
/// Returns the worker that runs the calling kernel; throws Error(internal) if called from host
/// code.
inline Worker& running_worker(const char* operation) {
  if (this_worker == nullptr || !this_worker->busy()) throw_called_by_host(operation);
  return *this_worker;
}

/// Returns the size of the shared memory to be poisoned, the gap included.
inline std::size_t poisoned_bytes(const Launch& launch) {
  return launch.shared_bytes + launch.shared_gap_end - launch.shared_gap_begin;
}
/// Returns the addressable size of a block's shared memory.
inline std::size_t shared_room(const Launch& launch) {
  return std::max(launch.shared_bytes, launch.shared_room);
}

/// Returns the size of a block's shared memory that the kernel may currently access.
inline std::size_t shared_extent(const Launch& launch) {
  return launch.shared_in_use == nullptr ? shared_room(launch)
                                         : __atomic_load_n(launch.shared_in_use, __ATOMIC_RELAXED);
}

std::string where(const Launch& launch, const Thread& thread, const Place* place);
std::string to_string(const Place& place);
/// Returns true if `a` and `b` are the same call in the source.
bool same_place(const Place& a, const Place& b);

}  // namespace rung::simt
