// SPDX-License-Identifier: Apache-2.0
// Timing of work that several threads run concurrently.
#include "rung/bench/cpu_rates.hpp"

#include <algorithm>

#include "rung/bench/clock.hpp"
#include "rung/bench/statistics.hpp"
#include "rung/cpu/team.hpp"

namespace rung::bench {

Rate best_rate(const std::vector<double>& seconds, double work) {
  const double least = *std::min_element(seconds.begin(), seconds.end());
  return {work / least, median(seconds) / least - 1};
}

std::vector<double> time_on_threads(int threads, void (*work)(int, long, void*), void* data) {
  constexpr double sample_seconds = 0.02;
  constexpr int samples = 7;  // machines are shared: the fastest of several samples is the ceiling
  std::vector<double> seconds;
  long repeats = 1;
  double begin = 0;
  bool counts = false;
  cpu::run_ranks(cpu::Ranks::exact, threads, [&](const cpu::Team& team) {
    for (int sample = 0; sample < samples;) {
      // One thread writes the shared data, between two barriers.
      team.wait();
      if (team.rank() == 0) begin = now();
      work(team.rank(), repeats, data);
      team.wait();
      if (team.rank() == 0) {
        const double all = now() - begin;
        const double each = all / static_cast<double>(repeats);
        counts = all >= sample_seconds;
        if (counts) {
          seconds.push_back(each);
        } else {
          repeats = std::max(repeats * 2, static_cast<long>(sample_seconds * 1.2 / each));
        }
      }
      team.wait();
      if (counts) ++sample;
    }
  });
  return seconds;
}

}  // namespace rung::bench
