// SPDX-License-Identifier: Apache-2.0
// optimizer / threads
//
// Idea     Chunks of parameters are divided among threads. Parameters are independent except for
//          the norm, whose squares are summed per chunk, then in chunk order, between two barriers.
// Changes  Against simd: all cores, with bitwise equal results.
// Cost     As simd; the cores share the memory bandwidth.
// Limits   Every valid call.
#include "rung/ops/optimizer/cpu/detail/steps.hpp"

namespace rung {
namespace {
using namespace optimizer_cpu;

/// Returns whether the problem is large enough for several threads; a strided element counts as 48
/// bytes more.
bool worth_a_team(const Optimizer::Args& args) {
  constexpr double bytes = 120e3, apart = 48;
  const double odd = args.flat() ? 0 : apart * static_cast<double>(args.elements.size());
  return Optimizer::cost(args).bytes + odd > bytes;
}
int threads_of(const Optimizer::Args& args, const Context& context) {
  return static_cast<int>(std::min<std::int64_t>(worth_a_team(args) ? context.threads() : 1,
                                                 std::max<std::int64_t>(chunks_of(args), 1)));
}

Work work(const Optimizer::Args& args, const Context& context) {
  return step_work(args, threads_of(args, context));
}

void run(const Optimizer::Args& args, Context& context) {
  const Kernels kernels = vector_kernels(args.parameters.dtype);
  const std::int64_t chunks = chunks_of(args);
  const bool needs_norm = args.needs_norm();
  auto* squares = static_cast<double*>(
      needs_norm ? context.workspace(static_cast<std::size_t>(chunks + 1) * sizeof(double))
                 : nullptr);
  const int threads = threads_of(args, context);
  double clip = 1;
  const auto ranks = needs_norm ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    const cpu::Range mine = team.share(chunks);
    if (needs_norm) {
      for (std::int64_t i = mine.begin; i < mine.end; ++i) {
        squares[i] = squares_of_chunk(args, kernels, i);
      }
      team.wait();
      if (team.rank() == 0) {
        double all = 0;
        for (std::int64_t i = 0; i < chunks; ++i) all += squares[i];
        clip = clip_of(args, all);
      }
      team.wait();
    }
    const cpu::Range elements{mine.begin * chunk_elements,
                              std::min(args.elements.size(), mine.end * chunk_elements)};
    for_runs(args, elements, [&](const Run& one) { kernels.step(args, one, clip); });
  });
}

const Rung<Optimizer> self{
    {.name = "threads", .step = 30, .after = "simd", .work = work, .run = run}};

}  // namespace
}  // namespace rung
