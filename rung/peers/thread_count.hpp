// SPDX-License-Identifier: Apache-2.0
// ThreadCount: sets the thread count of a third-party library to the context's for a scope.
#pragma once

#include <omp.h>

#include <atomic>

namespace rung::peer {

/// Scoped thread count. Changes a library's own setting only if it differs, and restores OpenMP's
/// thread count, which such libraries change.
class ThreadCount {
 public:
  /// Sets OpenMP's thread count, for libraries without a setting of their own.
  explicit ThreadCount(int threads) : before_(omp_get_max_threads()) {
    if (before_ != threads) omp_set_num_threads(threads);
  }
  ThreadCount(int threads, std::atomic<int>& last, void (*set)(int)) : ThreadCount(threads) {
    if (last.exchange(threads, std::memory_order_relaxed) != threads && set != nullptr)
      set(threads);
  }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  ~ThreadCount() {
    if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
  }

 private:
  int before_;
};

}  // namespace rung::peer
