// SPDX-License-Identifier: Apache-2.0
// Time gained by the threads of a team, and the exclusion of threads that lose their cores.
// Internal to rung/cpu/team.cpp.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>

#include "rung/cpu/team_wait.hpp"

namespace rung::cpu::detail {

inline Duration thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

/// Measures how long a thread works on a call, and how long it is kept from running.
class WorkMeter {
 public:
  /// Begins a call. CPU time is always read in long calls, but only occasionally in short ones. For
  /// a long call not measured from its start, CPU time counts from the last read, as if the thread
  /// had run since.
  void begin(Time now, bool measures) {
    begin_ = now;
    spun_ = spun;
    slept_ = slept;
    measures_ = measures || is_due(now);
    if (measures_) sample(now);
  }
  [[nodiscard]] bool is_due(Time now) const { return now - sampled_ >= tuning.between_samples; }
  /// Ends a call; returns false for a short call whose CPU time was not measured: no loss is known.
  bool end() {
    const Time now = Clock::now();
    elapsed_ = now - begin_;
    Duration ran = elapsed_ - (slept - slept_);
    lost_ = Duration{0};
    const bool measured = measures_ || elapsed_ >= tuning.between_samples;
    if (measured) {
      const Duration before = cpu_time_ + (begin_ - sampled_) * (measures_ ? 0 : 1);
      sample(now);
      const Duration all = ran;
      ran = std::clamp(cpu_time_ - before, Duration{0}, std::max(all, Duration{0}));
      lost_ = all - ran;
    }
    worked_ = std::max(ran - (spun - spun_), Duration{0});
    return measured;
  }
  [[nodiscard]] Duration elapsed() const { return elapsed_; }
  [[nodiscard]] Duration worked() const { return worked_; }
  [[nodiscard]] Duration lost() const { return lost_; }

 private:
  void sample(Time now) {
    sampled_ = now;
    cpu_time_ = thread_cpu_time();
  }

  bool measures_ = false;
  Time begin_, sampled_;
  Duration cpu_time_{0}, spun_{0}, slept_{0};
  Duration elapsed_{0}, worked_{0}, lost_{0};
};

/// Balance of the time that calls save by using a worker. If it becomes negative, because the
/// worker loses its core, the worker is excluded from calls, for longer each time.
class Worth {
 public:
  [[nodiscard]] bool is_left_out(Time now) const { return now < until_; }
  void add(Duration gain, Time now) {
    balance_ = std::min(balance_ + gain, tuning.most_credit);
    if (balance_ >= Duration{0}) return;
    const bool again = now < until_ + std::max(2 * length_, tuning.memory);
    penalty_ = again ? std::min(2 * penalty_, tuning.last_penalty) : tuning.first_penalty;
    length_ = std::min(penalty_ * (tuning.first_credit - balance_), tuning.longest_exclusion);
    until_ = now + length_;
    balance_ = tuning.first_credit;
  }

 private:
  Duration balance_ = tuning.first_credit, length_{0};
  Time until_;
  int penalty_ = 0;
};

}  // namespace rung::cpu::detail
