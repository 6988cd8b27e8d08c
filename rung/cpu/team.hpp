// SPDX-License-Identifier: Apache-2.0
//
// Team: the threads of one parallel call.
//
// run_shares(n, body) runs body(team) once for each of n ranks, which are independent: another
// thread takes the rank of one that is late, and one thread may run them all.
// run_team(n, body) runs body(team) on up to n threads at once, which may meet in team.wait().
// Threads that do not arrive within microseconds are left out: team.size() is any number from 1 to
// n, by which bodies divide their work, and on which their results must not depend.
//
// Both return when all ranks have ended, and their writes are visible then. With n = 1, and within
// another body, they call body on this thread alone. Each thread that makes calls has worker
// threads of its own, at most as many as it may use cores. They stay awake for 200 us after a call,
// then sleep, and end with the thread that makes the calls. A worker that loses its core during a
// call is left out of the next ones for a while, so that another busy process costs a call little
// (docs/adr/0016).
//
// The first exception of a body reaches the caller after all threads have ended. It releases the
// threads in wait(); ranks that have not started are skipped. Where the system cannot start a
// thread, both functions throw Error(out_of_memory), and no body has started. A child of fork()
// starts threads of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "rung/core/export.hpp"

namespace rung::cpu {

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

/// Dependence of the ranks of a body on each other.
enum class Ranks : std::uint8_t {
  independent,  // the body never waits: ranks run in any order, several perhaps on one thread
  concurrent,   // the body waits: each rank has a thread of its own; late threads have no rank
  exact         // as concurrent, with as many threads as requested, however late they are
};

namespace detail {
class Barrier;
RUNG_API void wait(Barrier* barrier);
}  // namespace detail

class Team {
 public:
  Team(int rank, int size, detail::Barrier* barrier)
      : rank_(rank), size_(size), barrier_(barrier) {}

  /// Returns the rank, from 0 to size() - 1; ranks that run concurrently are distinct.
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// Every thread arrives before any goes on. Throws Error(internal) in a body of run_shares().
  void wait() const {
    if (size_ > 1) detail::wait(barrier_);
  }
  /// This rank's share of `count` items.
  [[nodiscard]] Range share(std::int64_t count) const { return part_of(count, rank_, size_); }

 private:
  int rank_;
  int size_;
  detail::Barrier* barrier_;
};

namespace detail {
/// Plain function and pointer: a body then runs from one ordinary function, whatever instruction
/// set its caller was compiled for.
RUNG_API void run_ranks(Ranks ranks, int threads, void (*body)(const Team&, void*), void* data);
}  // namespace detail

/// Runs `body` on `threads` ranks; the call decides whether they are concurrent.
template <class Body>
void run_ranks(Ranks ranks, int threads, Body&& body) {
  if (threads <= 1) {
    body(Team(0, 1, nullptr));
    return;
  }
  using Plain = std::remove_reference_t<Body>;
  detail::run_ranks(
      ranks, threads, [](const Team& team, void* data) { (*static_cast<Plain*>(data))(team); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

template <class Body>
void run_team(int threads, Body&& body) {
  run_ranks(Ranks::concurrent, threads, body);
}

template <class Body>
void run_shares(int threads, Body&& body) {
  run_ranks(Ranks::independent, threads, body);
}

}  // namespace rung::cpu
