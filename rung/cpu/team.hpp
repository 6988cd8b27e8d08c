// SPDX-License-Identifier: Apache-2.0
//
// Team: the threads of one parallel call.
//
// run_shares(n, body) runs body(team) once for each of n independent ranks: a thread takes over the
// ranks of late threads, and may run all of them. run_team(n, body) runs body(team) on up to n
// threads at once, which may synchronize in team.wait(). Threads that do not join within
// microseconds are excluded: team.size() is a number from 1 to n, by which bodies divide their
// work, and on which their results must not depend.
//
// Both functions return when all ranks have ended, with their writes visible. With n = 1, and
// within another body, they run everything on the calling thread. Each calling thread has worker
// threads of its own, at most as many as the cores that it may use. Workers spin for 200 us after a
// call, then sleep, and exit with the calling thread. A worker that loses its core during a call is
// excluded from the next calls for a while, so that another busy process costs a call little
// (docs/adr/0016).
//
// The first exception of a body is rethrown in the caller after all threads have ended. It releases
// the threads in wait(); ranks that have not started are skipped. If the system cannot start a
// thread, both functions throw Error(out_of_memory) before any body starts. A child of fork()
// starts threads of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "rung/core/export.hpp"

namespace rung::cpu {

/// Half-open range of work items.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// Returns part `index` of [0, count), divided into `parts` nearly equal parts.
constexpr Range part_of(std::int64_t count, int index, int parts) {
  return {count / parts * index + count % parts * index / parts,
          count / parts * (index + 1) + count % parts * (index + 1) / parts};
}

/// Dependence between the ranks of a body.
enum class Ranks : std::uint8_t {
  independent,  // the body never waits: ranks run in any order, possibly several per thread
  concurrent,   // the body waits: one thread per rank; late threads get no rank
  exact         // as concurrent, with all requested threads, however late they are
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
  /// Waits until every thread of the team has arrived. Throws Error(internal) in a body of
  /// run_shares().
  void wait() const {
    if (size_ > 1) detail::wait(barrier_);
  }
  /// Returns this rank's part of `count` items.
  [[nodiscard]] Range share(std::int64_t count) const { return part_of(count, rank_, size_); }

 private:
  int rank_;
  int size_;
  detail::Barrier* barrier_;
};

namespace detail {
/// Takes a plain function and a pointer, so that bodies run from one ordinary function, whatever
/// instruction set their caller was compiled for.
RUNG_API void run_ranks(Ranks ranks, int threads, void (*body)(const Team&, void*), void* data);
}  // namespace detail

/// Runs `body` on `threads` ranks, whose dependence is chosen at run time.
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
