// SPDX-License-Identifier: Apache-2.0
// Synchronization between the threads of a team. Internal to rung/cpu/team.cpp.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rung::cpu::detail {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
using Duration = std::chrono::nanoseconds;
using Seconds = std::chrono::duration<double>;
using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Tuning {
  // Spin time before yielding. Workers join, and balanced parts end, within 1 to 2 us of each
  // other. After that, sched_yield() between polls costs a fraction of the wait and frees the core
  // for others.
  Duration spin = microseconds(5);
  // Time after which a waiting thread sleeps. Waking it takes 5 to 50 us.
  Duration wait_awake = microseconds(100);
  // Time after which a worker sleeps between calls; calls in quicker succession find it awake.
  Duration idle_awake = microseconds(200);
  // Least total thread time of recent calls for which a worker is woken: twice the time that waking
  // takes.
  Duration worth_waking = microseconds(100);
  // A sched_yield() at least this long means that the kernel ran another thread: the core is
  // shared.
  Duration long_yield = microseconds(20);
  // Longest time that a concurrent call waits for a worker that was awake (join_awake) or had to be
  // woken (join_asleep).
  Duration join_awake = microseconds(10);
  Duration join_asleep = microseconds(50);
  // Minimum interval between reads of a thread's CPU time, each of which takes 0.3 us.
  Duration between_samples = microseconds(200);
  // Amount by which a worker's losses may exceed its gains: the kernel takes some milliseconds to
  // find cores for threads that it has woken. `most_credit` limits the gains that a worker
  // accumulates.
  Duration first_credit = milliseconds(1), most_credit = milliseconds(4);
  // After that, the worker is excluded for a multiple of its loss. The multiple doubles, from
  // first_penalty up to last_penalty, if losses recur within `memory` (or twice the exclusion, if
  // longer) after an exclusion.
  int first_penalty = 4, last_penalty = 128;
  Duration memory = milliseconds(50);
  // First and last multiples of the time that was spent on a worker without a gain: on waking it,
  // or on waiting for it.
  int first_vain_penalty = 8, last_vain_penalty = 64;
  Duration longest_exclusion = milliseconds(500);
  Duration affinity_poll_interval = milliseconds(100);
};
inline constexpr Tuning tuning;

inline void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  static_assert(sizeof(word) == 4);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

inline void wake(const std::atomic<std::uint32_t>& word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

inline void pause_core() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// Time that this thread has waited so far, awake and asleep.
inline thread_local constinit Duration spun{0}, slept{0};

/// Spins until done(), then yields; false when `limit` has passed, or another thread has used the
/// core meanwhile.
template <class Done>
bool spin_until(const Done& done, Duration limit) {
  constexpr int polls_per_time = 16;
  for (int poll = 0; poll < polls_per_time; ++poll) {
    if (done()) return true;
    pause_core();
  }
  const Time begin = Clock::now();
  Time now = begin;
  bool is_done = done();
  while (!is_done && now - begin < limit) {
    if (now - begin < tuning.spin) {
      for (int poll = 0; poll < polls_per_time && !is_done; ++poll) {
        pause_core();
        is_done = done();
      }
      now = Clock::now();
      continue;
    }
    std::this_thread::yield();
    const Time after = Clock::now();
    is_done = done();
    if (after - now > tuning.long_yield) {
      slept += after - now;
      break;
    }
    now = after;
  }
  spun += now - begin;
  return is_done;
}

/// A word that threads wait on: they spin, then yield, then sleep.
class Signal {
 public:
  [[nodiscard]] std::uint32_t value() const { return word_.load(std::memory_order_acquire); }
  void wait_while(std::uint32_t old) {
    if (spin_until([&] { return value() != old; }, tuning.wait_awake)) return;
    const Time begin = Clock::now();
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (value() == old) sleep_while(word_, old);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    slept += Clock::now() - begin;
  }
  void set(std::uint32_t value) {
    word_.exchange(value, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) wake(word_, INT_MAX);
  }

 private:
  std::atomic<std::uint32_t> word_{0};
  std::atomic<int> sleepers_{0};
};

/// Central barrier; the phase counts how often all threads have arrived.
class Barrier {
 public:
  struct Abandoned {};

  void wait() {
    const std::uint32_t phase = phase_.value();
    check();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.set(phase + 1);
    } else {
      phase_.wait_while(phase);
    }
    check();
  }
  /// Makes all current and later calls of wait() throw Abandoned, because a thread will never
  /// arrive.
  void abandon() {
    abandoned_.store(true, std::memory_order_relaxed);
    phase_.set(phase_.value() + 1);
  }
  void expect(int threads) { threads_ = threads; }

 private:
  void check() const {
    if (abandoned_.load(std::memory_order_relaxed)) throw Abandoned{};
  }

  int threads_ = 1;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) Signal phase_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace rung::cpu::detail
