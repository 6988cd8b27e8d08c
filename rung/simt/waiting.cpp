// SPDX-License-Identifier: Apache-2.0
// Polling threads. A thread that yields sleeps until all other threads wait too. When all threads
// have polled without a change, pending copies are performed, then further blocks start; if there
// are no copies and no blocks, the launch is deadlocked.
#include <chrono>
#include <exception>
#include <thread>

#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

/// Deadlock thresholds, both of which must be exceeded: weighted polls without a change, and rounds
/// of polls by all threads.
constexpr std::uint64_t polls_before_deadlock = static_cast<std::uint64_t>(YieldReason::in_vain)
                                                << 14;
constexpr std::uint64_t rounds_before_deadlock = 200;
/// Number of releases of barriers and collectives after which sleeping threads poll again.
constexpr std::uint64_t releases_before_poll = 1024;
/// Number of rounds in which all threads yield while memory changes, before another block starts: a
/// thread may write while it waits for a block that is not resident.
constexpr std::uint64_t changes_before_admitting = 64;
/// Deadlock of threads whose stacks do not change: number of rounds of polls before the first
/// digest of the stacks, and time for which the digest must then stay equal.
constexpr std::uint64_t rounds_before_digest = 8;
constexpr std::chrono::milliseconds still_before_deadlock{300};

/// Number of atomics per turn of a thread while memory does not change, instead of
/// atomics_before_yield: the resident threads then all poll in vain, as do blocks that start in
/// this state, so longer turns would be wasted.
constexpr int atomics_in_vain = 16;

void mix(std::uint64_t& digest, std::uint64_t word) {
  digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
  digest ^= digest >> 29;
}

}  // namespace

void Worker::note_progress() {
  memory_changed = false;
  polls_ = stuck_ = rounds_ = 0;
  state_->progressed(waiting_);
}

void Worker::yield(YieldReason reason) {
  Thread& self = *current_;
  // Scales the weight to the number of atomics in the turn.
  const bool brief = reason == YieldReason::many_atomics && yields_early_ && atomics_left <= 0;
  polls_ +=
      static_cast<std::uint64_t>(reason) / (brief ? atomics_before_yield / atomics_in_vain : 1);
  yields_early_ = !memory_changed;
  atomics_left = yields_early_ ? atomics_in_vain : atomics_before_yield;
  asleep_.push_back(&self);
  Thread& next = *next_ready();
  if (&next == &self) {
    make_current(self);
  } else {
    switch_to(*self.fiber, next);
  }
}

void Worker::wait_for_lanes() {
  Thread& self = *current_;
  self.wait = Wait::lanes;
  Thread& next = *next_ready();
  if (&next == &self) {
    make_current(self);
  } else {
    switch_to(*self.fiber, next);
  }
}

void Worker::keep_step() {
  Thread& self = *current_;
  in_step_.push_back(&self);
  Thread& next = *next_ready();
  if (&next == &self) {
    make_current(self);
  } else {
    switch_to(*self.fiber, next);
  }
}

void Worker::step() {
  for (Thread* thread : in_step_) push_back(*thread);
  in_step_.clear();
  poll_occasionally();
}

void Worker::poll_occasionally() {
  // Running threads may loop through barriers until a sleeping thread makes progress.
  if (!asleep_.empty() && ++releases_ % releases_before_poll == 0) wake_all();
}

void Worker::wake_all() {
  for (Thread* thread : asleep_) push_back(*thread);
  asleep_.clear();
}

bool Worker::find_ready() {
  while (ready_begin_ == ready_end_) {
    if (live_ == 0) return false;
    if (recorder_ != nullptr && recorder_->any_ahead()) {
      // Sleeping threads may be lanes of these warps, which then catch up.
      if (!recorder_->release_ahead(asleep_.empty())) wake_all();
      continue;
    }
    if (!in_step_.empty()) {
      step();
      continue;
    }
    if (memory_changed) {
      if (++changes_ % changes_before_admitting == 0) admit_another();
      note_progress();
      wake_all();
    } else if (!find_work()) {
      blame_deadlock();
      abandon();
    }
  }
  return true;
}

#if defined(__SANITIZE_ADDRESS__)
__attribute__((no_sanitize_address))  // reads whole stacks
#endif
std::uint64_t
Worker::digest_of_sleepers() const {
  std::uint64_t sum = clock_reads_;  // a sum does not depend on the order of threads
  for (const Thread* thread : asleep_) {
    const Fiber& fiber = *thread->fiber;
    const auto* word = static_cast<const std::uint64_t*>(fiber.context);
    const auto* const end = reinterpret_cast<const std::uint64_t*>(
        static_cast<const std::byte*>(fiber.bottom) + fiber.size);
    std::uint64_t digest = reinterpret_cast<std::uintptr_t>(word);
    for (; word < end; ++word) mix(digest, *word);
    sum += digest;
  }
  return sum;
}

bool Worker::stands_still() {
  if (rounds_ < rounds_before_digest) return false;
  const auto now = std::chrono::steady_clock::now();
  const std::uint64_t digest = digest_of_sleepers();
  if (rounds_ == rounds_before_digest || digest != digest_) {
    digest_ = digest;
    still_since_ = now;
  }
  return now - still_since_ > still_before_deadlock;
}

bool Worker::find_work() {
  // All sleeping threads have polled since the last change.
  if (copies_.land_one(*this)) return true;
  const bool released = release_active_masks();
  if (asleep_.empty()) return released;
  if (state_->failure.any()) abandon();  // the awaited thread may have failed on another worker
  const bool nobody_runs = state_->all_wait(waiting_);
  if (nobody_runs && !released && admit_another()) return true;
  stuck_ += polls_;
  polls_ = 0;
  ++rounds_;
  const bool polled_enough = rounds_ > rounds_before_deadlock && stuck_ > polls_before_deadlock;
  if (polled_enough || (nobody_runs && stands_still())) {
    if (state_->all_stuck(waiting_)) {
      const auto keep_waiting = launch_->keep_waiting;
      if (keep_waiting == nullptr || !keep_waiting(launch_->data)) return false;
      wake_all();
      return true;
    }
    // Blocks on other OS threads are still running, or have not polled as often.
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  wake_all();
  return true;
}

bool Worker::admit_another() {
  bool admitted = false;
  try {
    admitted = admit();
  } catch (...) {
    escaped_ = std::current_exception();
    failed_position_ = current_->block->cluster->position;
  }
  if (escaped_ != nullptr) abandon();  // outside the handler, as in run_current()
  if (admitted) note_progress();
  return admitted;
}

void note_clock_read() {
  if (this_worker != nullptr && this_worker->busy()) this_worker->note_clock_read();
}

}  // namespace rung::simt
