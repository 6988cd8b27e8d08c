// SPDX-License-Identifier: Apache-2.0
// Interleaved timing in rounds, and speedups within rounds.
#include "rung/bench/alternate.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "rung/bench/clock.hpp"
#include "rung/bench/statistics.hpp"

namespace rung::bench {
namespace {

constexpr int rounds_when_slow = 3;
constexpr double very_slow = 4;  // times SamplingPlan::slow_seconds
constexpr long max_repeats = 1L << 30;

double time(const Contender& contender, long repeats) {
  const double begin = now();
  contender.run(repeats);
  return (now() - begin) / static_cast<double>(repeats);
}

struct Schedule {
  long repeats = 1;
  int rounds = 0;  // rounds in which this version takes part
};

/// Warms a version up and returns the number of repeats that makes a sample long enough.
Schedule calibrate(const Contender& contender, const SamplingPlan& plan) {
  Schedule schedule;
  double seconds = time(contender, 1);
  const double warm_at = now() + plan.warm_up_seconds;
  // Repeats grow until one sample is long enough. The first call may be far slower than later ones,
  // so each estimate uses the latest sample.
  for (;;) {
    const double total = seconds * static_cast<double>(schedule.repeats);
    if (total >= plan.sample_seconds && (now() >= warm_at || seconds >= plan.warm_up_seconds))
      break;
    if (total < plan.sample_seconds) {
      const double wanted = 1.2 * plan.sample_seconds / std::max(seconds, 1e-10);
      // At most tenfold at a time: a single measurement of a short call is dominated by clock
      // resolution.
      schedule.repeats = std::clamp(static_cast<long>(std::ceil(wanted)), schedule.repeats + 1,
                                    std::min(schedule.repeats * 10, max_repeats));
    }
    seconds = time(contender, schedule.repeats);
    if (schedule.repeats >= max_repeats) break;
  }
  schedule.rounds = rounds_of(seconds, plan);
  return schedule;
}

/// Returns whether a version with `wanted` samples in `rounds` rounds takes part in this round; its
/// rounds are evenly spaced.
bool takes_part(int round, int wanted, int rounds) {
  return (round + 1) * wanted / rounds > round * wanted / rounds;
}

std::vector<double> timed(const std::vector<double>& seconds) {
  std::vector<double> present;
  std::copy_if(seconds.begin(), seconds.end(), std::back_inserter(present),
               [](double s) { return !std::isnan(s); });
  return present;
}

}  // namespace

double Samples::median() const { return bench::median(timed(seconds)); }
double Samples::spread() const { return bench::spread(timed(seconds)); }
int Samples::count() const { return static_cast<int>(timed(seconds).size()); }

int rounds_of(double seconds, const SamplingPlan& plan) {
  if (seconds > very_slow * plan.slow_seconds) return 1;
  return seconds > plan.slow_seconds ? std::min(plan.rounds, rounds_when_slow) : plan.rounds;
}

void alternate(const std::vector<Contender>& contenders, const SamplingPlan& plan,
               const std::function<void(std::size_t)>& progress, std::vector<Samples>& samples) {
  constexpr double absent = std::numeric_limits<double>::quiet_NaN();
  samples.assign(contenders.size(),
                 {std::vector<double>(static_cast<std::size_t>(plan.rounds), absent)});
  std::vector<Schedule> schedules;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (progress) progress(i);
    schedules.push_back(calibrate(contenders[i], plan));
  }
  for (int round = 0; round < plan.rounds; ++round) {
    // Each round starts with the next version, and odd rounds run backward, so that no version
    // always runs after the same other version, whose data fills the caches.
    const std::size_t count = contenders.size();
    const std::size_t start = static_cast<std::size_t>(round) % std::max<std::size_t>(count, 1);
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t i = (start + (round % 2 == 0 ? turn : count - turn)) % count;
      if (!takes_part(round, schedules[i].rounds, plan.rounds)) continue;
      if (progress) progress(i);
      samples[i].seconds[static_cast<std::size_t>(round)] =
          time(contenders[i], schedules[i].repeats);
    }
  }
}

std::vector<Samples> alternate(const std::vector<Contender>& contenders, const SamplingPlan& plan,
                               const std::function<void(std::size_t)>& progress) {
  std::vector<Samples> samples;
  alternate(contenders, plan, progress, samples);
  return samples;
}

double speed_ratio(const Samples& a, const Samples& b) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < std::min(a.seconds.size(), b.seconds.size()); ++round) {
    const double ratio = a.seconds[round] / b.seconds[round];
    if (!std::isnan(ratio)) ratios.push_back(ratio);
  }
  return median(ratios);
}

}  // namespace rung::bench
