// SPDX-License-Identifier: Apache-2.0
// Timing several versions of one thing against each other. Machines drift - clocks, neighbors,
// temperature - so versions are not timed one after another but in rounds: each round times every
// version once, starting with a different one each time, and ratios are taken within a round.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace rung::bench {

/// One version. run(n) does the work n times in a row and returns when it is done.
struct Contender {
  std::function<void(long repeats)> run;
};

struct Plan {
  int rounds = 15;
  /// A sample is made of so many repeats that it takes at least this long: shorter ones would
  /// measure the clock.
  double sample_seconds = 2e-3;
  /// A version whose single run exceeds this is timed in fewer rounds, three; above four times
  /// this, in one.
  double slow_seconds = 0.4;
  /// Repeats that may be needed before a version runs at its usual speed.
  double warm_up_seconds = 5e-3;
};

/// Seconds a run. A version that was not timed in a round has a NaN there.
struct Samples {
  std::vector<double> seconds;
  [[nodiscard]] double median() const;
  [[nodiscard]] double spread() const;
  [[nodiscard]] int count() const;
};

/// Returns the number of rounds that a version takes part in, given the seconds of one run.
int rounds_of(double seconds, const Plan& plan);

/// `progress` is called before each sample.
std::vector<Samples> alternate(const std::vector<Contender>& contenders, const Plan& plan,
                               const std::function<void(std::size_t contender)>& progress = {});
/// Adds to `samples` instead, which keeps the rounds that were timed before `progress` throws.
void alternate(const std::vector<Contender>& contenders, const Plan& plan,
               const std::function<void(std::size_t contender)>& progress,
               std::vector<Samples>& samples);

/// Returns the speedup of `b` over `a`: the median of a's seconds / b's seconds over the rounds in
/// which both were timed. NaN if there is no such round.
double speed_ratio(const Samples& a, const Samples& b);

}  // namespace rung::bench
