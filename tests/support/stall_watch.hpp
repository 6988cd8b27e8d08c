// SPDX-License-Identifier: Apache-2.0
// Whether the machine was busy with others while a test measured times: then it shows nothing, and
// must not fail.
#pragma once

#include <gtest/gtest.h>

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

  /// Seconds by which it slept longer than asked for, in all.
  [[nodiscard]] double stalled() const { return 1e-9 * static_cast<double>(late_.load()); }

 private:
  using Clock = std::chrono::steady_clock;

  void watch() {
    constexpr auto nap = std::chrono::milliseconds(1);
    for (auto before = Clock::now(); !ended_;) {
      std::this_thread::sleep_for(nap);
      const auto now = Clock::now();
      // A timer may be late by its slack, which is no stall.
      constexpr auto slack = std::chrono::milliseconds(1);
      const auto late = now - before - nap;
      if (late > slack) {
        late_ += std::chrono::duration_cast<std::chrono::nanoseconds>(late).count();
      }
      before = now;
    }
  }

  std::atomic<std::chrono::nanoseconds::rep> late_{0};
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
