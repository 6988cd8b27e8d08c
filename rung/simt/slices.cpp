// SPDX-License-Identifier: Apache-2.0
// Time slices of threads that do not wait for each other. In code without hooks a loop that loads
// from memory ends its thread's slice after some iterations (rung/emulate/slices.cpp), and the next
// thread of a group runs. Neighboring threads then access a cache line one soon after the other,
// also where each thread walks down a column of a matrix, of which the caches hold few lines.
//
// Whether slices pay depends on the kernel, so its first unrecorded blocks run on trial with
// different lengths. Slices change neither what is recorded nor what a program computes, except
// where that depends on the order of its races or atomic operations.
#include <algorithm>
#include <chrono>

#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

/// Lengths in iterations. A switch costs as much as a few loads from the L1 cache, one of which may
/// hold only 8 to 12 lines of a column.
constexpr int slice_lengths[SliceTrials::lengths] = {unlimited_slice, 8, 16, 32};

}  // namespace

void Worker::begin_slices() {
  trial_ = -1;
  slice_ = unlimited_slice;
  if (recorder_ != nullptr || launch_->cooperative || state_->cluster_size != 1) return;
  if (slice_trials_ == nullptr) {
    slice_trials_ = &trials_[reinterpret_cast<const void*>(
        launch_->unrecorded_entry != nullptr ? launch_->unrecorded_entry : entry_)];
  }
  int number = slice_trials_->best;
  if (slice_trials_->blocks < SliceTrials::lengths * SliceTrials::rounds) {
    number = trial_ = slice_trials_->blocks % SliceTrials::lengths;
    trial_began_ = std::chrono::steady_clock::now();
  }
  slice_ = slice_lengths[number];
}

void Worker::end_slices() {
  if (trial_ < 0) return;
  SliceTrials& trials = *slice_trials_;
  const auto took = std::chrono::steady_clock::now() - trial_began_;
  std::chrono::steady_clock::duration& least = trials.least[trial_];
  least = trials.blocks < SliceTrials::lengths ? took : std::min(least, took);
  ++trials.blocks;
  const auto fastest = std::min_element(std::begin(trials.least), std::end(trials.least));
  trials.best = static_cast<int>(fastest - std::begin(trials.least));
}

int Worker::end_slice() {
  if (slice_ == unlimited_slice) return slice_;
  Thread& self = *current_;
  if (sliced_count_ == 0) sliced_full_ = false;  // the first thread of a group
  const bool joins = !sliced_full_ && sliced_count_ + 1 < slice_group && ready_begin_ != ready_end_;
  sliced_[(sliced_begin_ + sliced_count_) % slice_group] = &self;
  ++sliced_count_;
  Thread* next = nullptr;
  if (joins) {
    next = ready_[ready_begin_++ & ready_mask_];
  } else {
    sliced_full_ = true;
    next = sliced_[sliced_begin_++ % slice_group];
    --sliced_count_;
  }
  if (next != &self) switch_to(*self.fiber, *next);
  return slice_;
}

}  // namespace rung::simt

/// Ends a slice of the calling thread; returns the length of the next one.
extern "C" RUNG_API int rung_simt_slice() {
  using rung::simt::this_worker;
  if (this_worker == nullptr || !this_worker->busy()) return rung::simt::unlimited_slice;
  return this_worker->end_slice();
}
