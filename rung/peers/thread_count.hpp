// SPDX-License-Identifier: Apache-2.0
// ThreadCount: keeps somebody else's library on the context's number of threads for a scope.
#pragma once

#include <omp.h>

#include <atomic>

namespace rung::peer {

/// A library's own setting is made only where it changes, and OpenMP's, which such libraries change
/// behind the caller's back, is put back afterwards.
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
