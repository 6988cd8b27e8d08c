// SPDX-License-Identifier: Apache-2.0
// optimizer on a CPU: chunks of elements on a team of threads, the norm before the step, estimates.
#include "rung/cpu/team.hpp"
#include "rung/ops/optimizer/cpu/detail/steps.hpp"

namespace rung::optimizer_cpu {

void chunked(const Optimizer::Args& args, Context& context, const Kernels& kernels, int threads) {
  constexpr std::int64_t chunk = 1 << 14;
  const std::int64_t count = args.elements.size();
  const std::int64_t chunks = ceil_div(count, chunk);
  const auto end_of = [&](std::int64_t i) { return std::min(count, (i + 1) * chunk); };
  auto* squares = static_cast<double*>(
      args.needs_norm() ? context.workspace(static_cast<std::size_t>(chunks + 1) * sizeof(double))
                        : nullptr);
  threads = static_cast<int>(std::min<std::int64_t>(threads, std::max<std::int64_t>(chunks, 1)));
  double clip = 1;
  const auto ranks = squares != nullptr ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    const cpu::Range mine = team.share(chunks);
    if (squares != nullptr) {
      for (std::int64_t i = mine.begin; i < mine.end; ++i) {
        squares[i] = 0;
        for_runs(args, i * chunk, end_of(i),
                 [&](const Run& run) { squares[i] += kernels.squares(run); });
      }
      team.wait();
      if (team.rank() == 0) {
        double all = 0;
        for (std::int64_t i = 0; i < chunks; ++i) all += squares[i];
        clip = clip_of(args, all);
      }
      team.wait();
    }
    for_runs(args, mine.begin * chunk, std::min(count, mine.end * chunk),
             [&](const Run& run) { kernels.step(args, run, clip); });
  });
}

double seconds(const Optimizer::Args& args) {
  // On a 2-core Emerald Rapids vCPU.
  constexpr double bytes_per_second = 12e9, an_odd_element = 4e-9;
  const double odd = args.flat() ? 0 : an_odd_element * static_cast<double>(args.elements.size());
  return 30e-9 + Optimizer::cost(args).bytes / bytes_per_second + odd;
}

bool worth_a_team(const Optimizer::Args& args) { return seconds(args) > 10e-6; }

}  // namespace rung::optimizer_cpu
