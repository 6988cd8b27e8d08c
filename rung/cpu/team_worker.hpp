// SPDX-License-Identifier: Apache-2.0
// State of one call of a team, and its worker threads. Internal to rung/cpu/team.cpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "rung/cpu/team.hpp"
#include "rung/cpu/team_hooks.hpp"
#include "rung/cpu/team_wait.hpp"
#include "rung/cpu/team_worth.hpp"

namespace rung::cpu::detail {

using Body = void(const Team&, void*);

/// Set of ranks of a call that threads have claimed.
class RankClaims {
 public:
  [[nodiscard]] int capacity() const { return static_cast<int>(taken_.size()) * 64; }
  void grow(int ranks) { taken_ = std::vector<std::atomic<std::uint64_t>>(words(ranks)); }
  void reset(int ranks) {
    for (std::size_t i = 0; i < words(ranks); ++i) taken_[i].store(0, std::memory_order_relaxed);
  }
  bool take(int rank) {
    std::atomic<std::uint64_t>& word = taken_[static_cast<std::size_t>(rank) / 64];
    const std::uint64_t bit = std::uint64_t{1} << rank % 64;
    if ((word.load(std::memory_order_relaxed) & bit) != 0) return false;
    return (word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }

 private:
  static std::size_t words(int ranks) { return (static_cast<std::size_t>(ranks) + 63) / 64; }

  std::vector<std::atomic<std::uint64_t>> taken_;
};

/// State of one multithreaded call of run_ranks().
class TeamCall {
 public:
  TeamCall(Ranks ranks, int threads, Body* body, void* data, RankClaims& claims, bool measured)
      : independent_(ranks == Ranks::independent),
        measured_(measured),
        threads_(threads),
        body_(body),
        data_(data),
        claims_(claims) {
    if (independent_) claims_.reset(threads);
  }

  [[nodiscard]] bool independent() const { return independent_; }
  /// Returns true if all threads measure their work in this call, even if it is short.
  [[nodiscard]] bool is_measured() const { return measured_; }

  /// Runs rank `first`, then all unclaimed ranks; returns the number of ranks run.
  int run_ranks_from(int first) {
    int ran = 0;
    for (int i = 0; i < threads_ && !failed_.load(std::memory_order_relaxed); ++i) {
      const int rank = first + i < threads_ ? first + i : first + i - threads_;
      if (!claims_.take(rank)) continue;
      guarded(rank, threads_, nullptr);
      ++ran;
    }
    return ran;
  }

  /// Sets the team's size and releases the threads that have joined.
  void start(int size) {
    barrier_.expect(size);
    size_.set(static_cast<std::uint32_t>(size));
  }
  /// Runs a rank on a worker that has joined; `rank` is valid once the call has started.
  void run_rank(const int& rank) {
    size_.wait_while(0);
    guarded(rank, static_cast<int>(size_.value()), &barrier_);
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void guarded(int rank, int size, Barrier* barrier) {
    try {
      body_(Team(rank, size, barrier), data_);
    } catch (const Barrier::Abandoned&) {
      return;  // released by the thread whose exception is rethrown
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
      if (barrier != nullptr) barrier->abandon();
    }
  }

  bool independent_, measured_;
  int threads_;
  Body* body_;
  void* data_;
  RankClaims& claims_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
  alignas(64) Signal size_;
  Barrier barrier_;
};

/// True in a thread that executes a body: nested calls run on that thread only.
inline thread_local constinit bool in_body = false;

inline std::atomic<int> running_workers{0};

/// Thread that takes part in the calls of one other thread, which alone uses this object.
class alignas(64) TeamWorker {
 public:
  explicit TeamWorker(int index) : index_(index), thread_([this] { serve(); }) {
    running_workers.fetch_add(1, std::memory_order_relaxed);
  }
  ~TeamWorker() {
    if (state_.exchange(stopping, std::memory_order_acq_rel) == asleep) wake(state_, 1);
    thread_.join();
    running_workers.fetch_sub(1, std::memory_order_relaxed);
  }
  TeamWorker(const TeamWorker&) = delete;
  TeamWorker& operator=(const TeamWorker&) = delete;

  /// Returns true if a call that begins now should exclude this worker, given whether the call
  /// wakes sleeping workers and waits for late ones.
  [[nodiscard]] bool is_left_out(Time now, bool wakes, bool waits) const {
    return worth_.is_left_out(now) || (waits && now < wait_from_) ||
           ((!wakes || now < wake_from_) && state_.load(std::memory_order_relaxed) == asleep);
  }
  void add_gain(Duration gain, Time now) { worth_.add(gain, now); }

  void invite(TeamCall& call) {
    call_ = &call;
    const bool sleeps = state_.exchange(invited, std::memory_order_acq_rel) == asleep;
    was_awake_ = !sleeps && !waking_;
    woken_ = sleeps;
    if (!sleeps) return;
    waking_ = true;
    const Time begin = Clock::now();
    wake(state_, 1);
    wake_time_ = Clock::now() - begin;
  }
  /// Returns the time allowed for the worker to join.
  [[nodiscard]] Duration join_time() const {
    return was_awake_ ? tuning.join_awake : tuning.join_asleep;
  }
  [[nodiscard]] bool has_joined() const {
    return state_.load(std::memory_order_acquire) != invited;
  }
  /// Withdraws the invitation; returns false if the worker has joined.
  bool withdraw() {
    std::uint32_t expected = invited;
    return state_.compare_exchange_strong(expected, idle, std::memory_order_acquire);
  }
  /// Sets the rank of a worker that has joined a call that has not started.
  void set_rank(int rank) { rank_ = rank; }
  /// Waits until a worker that has joined is done.
  void finish() {
    waking_ = false;
    // A worker that is done may already be asleep again.
    const auto done = [&] {
      const std::uint32_t state = state_.load(std::memory_order_acquire);
      return state != joined && state != awaited;
    };
    if (!spin_until(done, tuning.wait_awake)) {
      const Time begin = Clock::now();
      std::uint32_t expected = joined;
      if (state_.compare_exchange_strong(expected, awaited, std::memory_order_acquire)) {
        while (state_.load(std::memory_order_acquire) == awaited) sleep_while(state_, awaited);
      }
      slept += Clock::now() - begin;
    }
  }
  /// Return the time worked, or lost, in the last call.
  [[nodiscard]] Duration worked() const { return meter_.worked(); }
  [[nodiscard]] Duration lost() const { return meter_.lost(); }
  /// Records a call that the worker has joined.
  void note_use() {
    if (ranks_run_ > 0) {
      vain_penalty_ = tuning.first_vain_penalty;
    } else {
      note_no_use(Duration{0});
    }
  }
  /// Records a call in which waiting for the worker for `waited`, or waking it, did not pay off; it
  /// is then excluded for a while.
  void note_no_use(Duration waited) {
    const Duration cost = waited + (woken_ ? wake_time_ : Duration{0});
    if (cost == Duration{0}) return;
    const Time from = Clock::now() + vain_penalty_ * cost;
    if (woken_) wake_from_ = from;
    if (waited > Duration{0}) wait_from_ = from;
    vain_penalty_ = std::min(2 * vain_penalty_, tuning.last_vain_penalty);
  }

 private:
  enum State : std::uint32_t {
    idle,      // spins
    asleep,    // waits in a futex
    invited,   // a call is in progress
    joined,    // takes part in the call
    awaited,   // takes part; the caller sleeps
    stopping,  // must exit
  };

  void serve() {
    in_body = true;
    while (wait_for_call()) {
      if (const auto hook = team_hooks::before_joining.load(std::memory_order_relaxed))
        hook(index_);
      std::uint32_t expected = invited;
      if (!state_.compare_exchange_strong(expected, joined, std::memory_order_acq_rel)) continue;
      meter_.begin(Clock::now(), call_->is_measured());
      if (call_->independent()) {
        ranks_run_ = call_->run_ranks_from(index_ + 1);
      } else {
        call_->run_rank(rank_);
        ranks_run_ = 1;
      }
      meter_.end();
      if (state_.exchange(idle, std::memory_order_acq_rel) == awaited) wake(state_, 1);
    }
  }

  /// Waits for an invitation; returns false if the worker must exit.
  bool wait_for_call() {
    std::uint32_t state = idle;
    const auto called = [&] {
      state = state_.load(std::memory_order_acquire);
      return state == invited || state == stopping;
    };
    while (!spin_until(called, tuning.idle_awake)) {
      std::uint32_t expected = idle;
      if (!state_.compare_exchange_strong(expected, asleep, std::memory_order_acq_rel)) continue;
      while (state_.load(std::memory_order_acquire) == asleep) sleep_while(state_, asleep);
    }
    return state == invited;
  }

  std::atomic<std::uint32_t> state_{idle};
  int index_;
  // Written before the worker may read them, and read after the worker has written them.
  TeamCall* call_ = nullptr;
  int rank_ = 0, ranks_run_ = 0;
  alignas(64) WorkMeter meter_;
  // Accessed by the caller only.
  alignas(64) Worth worth_;
  bool waking_ = true;      // started or woken, and has not joined a call since
  bool was_awake_ = false;  // when the call began; else it was asleep, or waking
  bool woken_ = false;      // by this call
  Duration wake_time_{0};
  Time wake_from_, wait_from_;
  int vain_penalty_ = tuning.first_vain_penalty;
  std::thread thread_;  // starts last
};

}  // namespace rung::cpu::detail
