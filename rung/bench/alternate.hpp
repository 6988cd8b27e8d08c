// SPDX-License-Identifier: Apache-2.0
// Interleaved timing of several versions. Machines drift (clocks, temperature, other processes), so
// versions are timed in rounds: each round times every version once, starting with a different
// version, and speedups are computed within rounds.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace rung::bench {

/// A version to be timed. run(n) runs the work n times and returns when it has completed.
struct Contender {
  std::function<void(long repeats)> run;
};

struct SamplingPlan {
  int rounds = 15;
  /// Minimum time of a sample, which repeats the work as often as needed: the clock's resolution
  /// dominates shorter samples.
  double sample_seconds = 2e-3;
  /// Seconds of a single run above which a version is timed in at most three rounds; above four
  /// times as much, in one round.
  double slow_seconds = 0.4;
  /// Minimum time of the warm-up before a version's first sample.
  double warm_up_seconds = 5e-3;
};

/// Seconds per run, by round; NaN in rounds in which the version was not timed.
struct Samples {
  std::vector<double> seconds;
  [[nodiscard]] double median() const;
  [[nodiscard]] double spread() const;
  [[nodiscard]] int count() const;
};

/// Returns the number of rounds that a version takes part in, given the seconds of one run.
int rounds_of(double seconds, const SamplingPlan& plan);

/// Times the contenders in rounds and returns their samples. Calls `progress` before each sample.
std::vector<Samples> alternate(const std::vector<Contender>& contenders, const SamplingPlan& plan,
                               const std::function<void(std::size_t contender)>& progress = {});
/// Writes the samples to `samples`, which keeps the rounds timed so far if `progress` throws.
void alternate(const std::vector<Contender>& contenders, const SamplingPlan& plan,
               const std::function<void(std::size_t contender)>& progress,
               std::vector<Samples>& samples);

/// Returns the speedup of `b` over `a`: the median of a's seconds / b's seconds over the rounds in
/// which both were timed. NaN if there is no such round.
double speed_ratio(const Samples& a, const Samples& b);

}  // namespace rung::bench
