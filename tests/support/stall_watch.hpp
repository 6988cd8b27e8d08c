// SPDX-License-Identifier: Apache-2.0
// Detects that other programs stalled a test while it measured times: the times then show nothing,
// and the test must not fail.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace rung::test {

/// Watches, by a thread that sleeps a millisecond at a time, for how long threads wait for a core.
class StallWatch {
 public:
  StallWatch() : watcher_([this] { watch(); }) {}
  ~StallWatch() {
    ended_ = true;
    watcher_.join();
  }
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  /// Seconds by which it slept longer than asked for, in all; of the nap that has not ended, too.
  [[nodiscard]] double stalled() const {
    return 1e-9 * static_cast<double>(late_.load() + late_since(began_.load()));
  }

 private:
  using Count = std::chrono::nanoseconds::rep;

  static Count now() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  /// A timer may be late by its slack, which is no stall.
  static Count late_since(Count began) {
    constexpr Count nap_and_slack = 2'000'000;
    return std::max<Count>(0, now() - began - nap_and_slack);
  }

  void watch() {
    while (!ended_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      late_ += late_since(began_);
      began_ = now();
    }
  }

  std::atomic<Count> late_{0};
  std::atomic<Count> began_{now()};  // the nap
  std::atomic<bool> ended_{false};
  std::thread watcher_;  // the last: it begins at once
};

}  // namespace rung::test

/// Expects a condition that times decide. A test that would fail is skipped if others had the cores
/// for more than `seconds`.
#define RUNG_EXPECT_UNLESS_STALLED(condition, watch, seconds)                   \
  if (!(condition)) {                                                           \
    if ((watch).stalled() > (seconds)) {                                        \
      GTEST_SKIP() << "the machine was busy for " << (watch).stalled() << " s"; \
    }                                                                           \
    ADD_FAILURE() << #condition;                                                \
  }                                                                             \
  static_assert(true, "a semicolon follows")
