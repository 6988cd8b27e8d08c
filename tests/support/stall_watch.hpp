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

/// Measures how long threads wait for a core, by a thread that sleeps a millisecond at a time.
class StallWatch {
 public:
  StallWatch() : watcher_([this] { watch(); }) {}
  ~StallWatch() {
    ended_ = true;
    watcher_.join();
  }
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  /// Returns the seconds by which the sleeps exceeded the requested time, in all, including the
  /// current sleep.
  [[nodiscard]] double stalled() const {
    return 1e-9 * static_cast<double>(late_.load() + late_since(began_.load()));
  }

 private:
  using Count = std::chrono::nanoseconds::rep;

  static Count now() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  /// Returns the delay of a sleep that began at `began`, without the timer's slack, which is no
  /// stall.
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
  std::atomic<Count> began_{now()};  // start of the current sleep
  std::atomic<bool> ended_{false};
  std::thread watcher_;  // last member: the thread starts immediately
};

}  // namespace rung::test

/// Expects a condition that depends on measured times. Instead of failing, skips the test if other
/// programs had the cores for more than `seconds`.
#define RUNG_EXPECT_UNLESS_STALLED(condition, watch, seconds)                   \
  if (!(condition)) {                                                           \
    if ((watch).stalled() > (seconds)) {                                        \
      GTEST_SKIP() << "the machine was busy for " << (watch).stalled() << " s"; \
    }                                                                           \
    ADD_FAILURE() << #condition;                                                \
  }                                                                             \
  static_assert(true, "a semicolon follows")
