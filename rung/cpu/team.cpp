// SPDX-License-Identifier: Apache-2.0
// The thread team: one parallel region of OpenMP a call, barriers that spin before they yield.
#include "rung/cpu/team.hpp"

#include <omp.h>
#include <pthread.h>

#include <atomic>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "rung/core/error.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace rung::cpu {

namespace {

/// Set in the child of a fork(): the OpenMP runtime would wait for threads that only its parent
/// has.
std::atomic<bool> forked{false};
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] { forked = true; });

/// Runs body(rank) on `threads` threads of its own, the calling one among them. Throws
/// Error(out_of_memory), with no body begun, when the system does not start as many.
template <class Body>
void with_own_threads(int threads, const Body& body) {
  enum Start { pending, go, cancelled };
  std::atomic<int> start{pending};
  std::vector<std::jthread> others;
  const auto begin = [&](Start value) {
    start = value;
    start.notify_all();
  };
  try {
    others.reserve(static_cast<std::size_t>(threads));
    for (int rank = 1; rank < threads; ++rank) {
      others.emplace_back([&start, &body, rank] {
        start.wait(pending);
        if (start == go) body(rank);
      });
    }
  } catch (const std::exception& error) {  // std::system_error, or std::bad_alloc
    begin(cancelled);
    throw Error(ErrorCode::out_of_memory, "thread " + std::to_string(others.size() + 2) + " of " +
                                              std::to_string(threads) + " cannot be started (" +
                                              error.what() +
                                              "); accepted: a context of fewer threads");
  }
  begin(go);
  body(0);
}

/// The OpenMP runtime ends the process when it cannot start a thread. It keeps threads for each
/// thread that calls it, so the first time that one needs so many, they are started once here.
void expect_threads(int threads) {
  thread_local int known = 1;
  if (threads <= known) return;
  with_own_threads(threads, [](int) {});
  known = threads;
}

/// That a parallel region begins after what precedes it and ends before what follows, OpenMP
/// promises; ThreadSanitizer (tests/tsan) does not see it, because the runtime is not compiled for
/// it, and is informed. Of no effect elsewhere.
struct RegionOrder {
#if defined(__SANITIZE_THREAD__)
  void release() { __tsan_release(this); }
  void acquire() { __tsan_acquire(this); }
#else
  void release() {}
  void acquire() {}
#endif
};

/// body(rank, size) on OpenMP's threads. Without ThreadSanitizer in this function alone: its reads
/// of what the region captures are the compiler's own.
template <class Body>
__attribute__((no_sanitize("thread"))) void with_openmp_threads(int threads, const Body& body) {
  RegionOrder begin, end;
  begin.release();
#pragma omp parallel num_threads(threads)
  {
    begin.acquire();
    body(omp_get_thread_num(), omp_get_num_threads());
    end.release();
  }
  end.acquire();
}

}  // namespace

void Barrier::pause(int spin) const {
  // About 20 us of spinning before the first yield: longer than the skew of well-balanced shares.
  constexpr int spins = 1000;
  if (abandoned_.load(std::memory_order_relaxed)) throw Abandoned{};
  if (spin >= spins) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__)
  _mm_pause();
#endif
}

namespace detail {

void run_parallel(int threads, void (*body)(const Team&, void*), void* data) {
  Barrier barrier;
  std::exception_ptr failure;
  std::atomic<bool> failed{false};
  const auto guarded = [&](int rank, int size) {
    try {
      body(Team(rank, size, &barrier), data);
    } catch (const Barrier::Abandoned&) {
      return;  // released by the thread whose exception is carried
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
      barrier.abandon();
    }
  };
  if (forked) {
    with_own_threads(threads, [&](int rank) { guarded(rank, threads); });
  } else {
    expect_threads(threads);
    with_openmp_threads(threads, guarded);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail
}  // namespace rung::cpu
