// SPDX-License-Identifier: Apache-2.0
//
// Team: the threads of one parallel call. run_team(n, body) runs body(team) on up to n threads and
// returns when all are done; with n = 1 it is a plain call that never enters the OpenMP runtime.
// The runtime may give fewer threads than requested (nested regions, limits): bodies divide their
// work by team.size(), never by the number requested.
//
// An exception in one thread's body reaches the caller of run_team() after all threads have ended;
// threads that wait at a barrier for the one that failed are released. Where the system cannot
// start the threads, run_team() throws Error(out_of_memory). In the child of a fork(), where
// OpenMP's threads no longer exist, each call starts threads of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "rung/core/export.hpp"

namespace rung::cpu {

/// Central sense-reversing barrier that spins, then yields: a spinning wait costs some 0.1 us
/// where an operating-system wait costs 5 to 50, but when more threads than cores are running, the
/// one awaited needs the core.
class Barrier {
 public:
  /// `threads`: how many meet here, the same in all calls. Not a member: what the runtime really
  /// gives is known only inside a parallel region, and a region of its own to note it down costs
  /// all threads a barrier of the operating system's kind.
  void wait(int threads) {
    const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      return;
    }
    for (int spin = 0; phase_.load(std::memory_order_acquire) == phase; ++spin) pause(spin);
  }
  /// A thread will never arrive: all that wait, or come to wait, throw Abandoned.
  void abandon() { abandoned_.store(true, std::memory_order_relaxed); }
  struct Abandoned {};

 private:
  RUNG_API void pause(int spin) const;

  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};
  std::atomic<bool> abandoned_{false};
};

/// A half-open range of work items.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// Part `index` of `parts` nearly equal ones of [0, count).
constexpr Range part_of(std::int64_t count, int index, int parts) {
  return {count / parts * index + count % parts * index / parts,
          count / parts * (index + 1) + count % parts * (index + 1) / parts};
}

class Team {
 public:
  Team(int rank, int size, Barrier* barrier) : rank_(rank), size_(size), barrier_(barrier) {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// Every thread arrives before any goes on.
  void wait() const {
    if (size_ > 1) barrier_->wait(size_);
  }
  /// This thread's share of `count` items.
  [[nodiscard]] Range share(std::int64_t count) const { return part_of(count, rank_, size_); }

 private:
  int rank_;
  int size_;
  Barrier* barrier_;
};

namespace detail {
/// Plain function and pointer: the parallel region then lives in one ordinary function, whatever
/// instruction set the caller was compiled for.
RUNG_API void run_parallel(int threads, void (*body)(const Team&, void*), void* data);
}  // namespace detail

template <class Body>
void run_team(int threads, Body&& body) {
  if (threads <= 1) {
    body(Team(0, 1, nullptr));
    return;
  }
  using Plain = std::remove_reference_t<Body>;
  detail::run_parallel(
      threads, [](const Team& team, void* data) { (*static_cast<Plain*>(data))(team); },
      std::addressof(body));
}

}  // namespace rung::cpu
