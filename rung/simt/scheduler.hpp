// SPDX-License-Identifier: Apache-2.0
// The scheduler of the simulated GPU: an OS thread's worker runs the threads of its resident blocks
// as fibers, one at a time, each until it waits or ends. Internal to simt/.
//
// A fiber that finishes a thread takes the next unstarted one without a switch, so that a kernel
// that never waits runs all its threads on one stack. A thread that waits jumps straight to the
// next ready one; there is no dispatcher in between.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "rung/simt/fiber.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/simulator.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

using dialect::dim3;
using dialect::uint3;

// The built-in variables of words.hpp as the scheduler writes them.
extern RUNG_API constinit thread_local uint3 thread_index __asm__("rung_simt_thread_index")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local uint3 block_index __asm__("rung_simt_block_index")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local dim3 block_extent __asm__("rung_simt_block_extent")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local dim3 grid_extent __asm__("rung_simt_grid_extent")
    __attribute__((tls_model("initial-exec")));

enum class Wait : std::uint8_t { none, barrier, warp, active_mask, grid, exited };

/// A cp.async that was issued and has not become visible.
struct AsyncCopy {
  std::byte* to;
  const std::byte* from;
  int bytes;
  int valid;  // the rest is filled with zeros
  std::uint32_t group;
};

struct Block;
struct Warp;

struct Thread {
  Fiber* fiber = nullptr;  // null before it starts and after it ends
  Block* block = nullptr;
  Warp* warp = nullptr;
  uint3 index{};
  int lane = 0;

  Wait wait = Wait::none;
  int barrier = 0;             // which, of Wait::barrier
  const char* operation = "";  // what it waits in
  Place place;                 // and where
  std::uint32_t mask = 0;      // of Wait::warp
  Resolve resolve = nullptr;   // likewise
  std::uint32_t answer = 0;    // of a barrier's reduction or an active mask

  std::vector<AsyncCopy> copies;  // in order of issue
  std::uint32_t copy_group = 0;   // the group being filled
};

struct Warp {
  std::uint32_t exited = 0;   // lanes that ended or never were
  std::uint32_t waiting = 0;  // lanes in a collective
  Thread* lanes[warp_lanes] = {};
  void* requests[warp_lanes] = {};
};

/// One of the sixteen barriers of a block.
struct Barrier {
  int expected = 0;  // threads of a bar.sync with a count; 0: every thread that has not exited
  int arrived = 0;
  int voted = 0;  // of those, with a true predicate
  BlockReduction reduction = BlockReduction::none;
  Place place;
};

struct Block {
  uint3 index{};
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier barriers[named_barriers];
  int live = 0;
  std::uint64_t random = 0;  // state of the generator behind ThreadOrder::random
  std::byte* shared = nullptr;
  std::size_t shared_capacity = 0;

  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();
};

class Worker {
 public:
  Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Runs `count` blocks, resident together; block i has the linear index indices[i].
  /// Throws what went wrong in them.
  void run(const Launch& launch, ThreadOrder order, const std::uint64_t* indices,
           std::size_t count);
  /// After a launch's last block: throws if a kernel has overflowed its stack.
  void check_stacks(const Launch& launch);
  [[nodiscard]] bool busy() const { return launch_ != nullptr; }

  // What follows is for the operations that kernels call.
  [[nodiscard]] Thread& current() const { return *current_; }
  [[nodiscard]] const Launch& launch() const { return *launch_; }
  /// Suspends the current thread until it is made ready again.
  void wait(Wait reason, const char* operation, Place place);
  void yield();
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
  /// Completes the collective of these lanes if all have come. Each goes on later.
  void try_complete(Warp& warp, std::uint32_t mask);
  /// Notes why the launch fails; abandon() comes next.
  void blame(const std::string& what, const Thread& thread, const Place* place);
  /// Gives up the launch. Does not unwind: device code cannot catch, nor can noexcept code stop it.
  /// Nothing that owns memory may be alive in the caller, which is why blame() comes apart.
  [[noreturn]] void abandon();

 private:
  static void fiber_main(boost::context::detail::transfer_t arrival);
  void prepare(Block& block, std::uint64_t index);
  void run_current();
  Thread* finish_current();
  Thread* next_ready();
  bool release_active_masks();
  void blame_deadlock();
  void rethrow_escaped();

  void make_current(Thread& thread) {
    if (current_ == nullptr || thread.block != current_->block) block_index = thread.block->index;
    current_ = &thread;
    thread_index = thread.index;
    thread.wait = Wait::none;
  }
  void switch_to(Fiber& from, Thread& next);

  void push_back(Thread& thread) { ready_[ready_end_++ & ready_mask_] = &thread; }
  void push_front(Thread& thread) { ready_[--ready_begin_ & ready_mask_] = &thread; }

  FiberPool fibers_;
  Fiber main_;
  Fiber abandoned_;  // where a failed thread was left, which nobody needs
  Fiber::Exceptions* exceptions_;
  const Launch* launch_ = nullptr;
  ThreadOrder order_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::size_t resident_ = 0;
  Thread* current_ = nullptr;
  std::uint64_t live_ = 0;     // threads that have not exited, of all resident blocks
  std::uint64_t threads_ = 0;  // all of them
  std::uint64_t grid_arrived_ = 0;

  std::vector<Thread*> ready_;  // a ring; its indices run freely and wrap by the mask
  std::uint64_t ready_begin_ = 0, ready_end_ = 0, ready_mask_ = 0;
  std::vector<Thread*> gathered_;

  std::string failure_;
  bool failed_ = false;
  std::exception_ptr escaped_;  // what a kernel threw
};

/// The calling OS thread's worker; made at its first launch.
Worker& worker();
extern constinit thread_local Worker* this_worker __attribute__((tls_model("initial-exec")));
[[noreturn]] void throw_called_by_host(const char* operation);
/// The worker if a kernel is running on it; throws Error(internal) for a call from host code.
inline Worker& running_worker(const char* operation) {
  if (this_worker == nullptr || !this_worker->busy()) throw_called_by_host(operation);
  return *this_worker;
}

std::string where(const Launch& launch, const Thread& thread, const Place* place);
std::string to_string(const Place& place);

/// Sizes a cooperative launch may have on the simulated device.
std::uint64_t resident_blocks(const Launch& launch);

}  // namespace rung::simt
