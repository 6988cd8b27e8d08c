// SPDX-License-Identifier: Apache-2.0
// elementwise / threads
//
// Idea     a team shares the elements, and results too many for the caches go past them: a
//          streaming store does not first fetch the line that it replaces, a quarter of what add
//          moves.
// Changes  against strided: threads, and streaming stores.
// Cost     every operand once, the result once, nothing else.
// Limits   the general rung: every valid call. Problems of a few microseconds stay on one thread,
//          as waking another takes about as long.
// Tried    on a 2-core Zen 5 vCPU, f32 add of 2^24 elements, one thread: computing a piece in L1
//          and streaming it from there: 0.93 of the best peer, as loads then wait for stores, where
//          streaming from the kernel has 1.27; prefetching 1 to 8 KiB ahead: -2 to -25 %.
// Source   Intel, Optimization Reference Manual, "Non-temporal stores".
#include "rung/cpu/team.hpp"
#include "rung/ops/elementwise/cpu/detail/estimate.hpp"
#include "rung/ops/elementwise/cpu/detail/visit.hpp"

namespace rung {
namespace {

struct Tuning {
  double seconds_worth_a_team = 6e-6;  // of one core: below, a second thread does not pay
  double streamed_bytes = 6 << 20;     // of the result: beyond, it would not stay in the caches
};
constexpr Tuning tuning;

int threads_worth(const Elementwise::Args& args, const Context& context) {
  const double seconds = elementwise_cpu::one_core_seconds(args);
  return seconds < tuning.seconds_worth_a_team ? 1 : context.threads();
}

bool worth_streaming(const Elementwise::Args& args) {
  return static_cast<double>(args.size()) * static_cast<double>(size_of(args.z.dtype)) >=
         tuning.streamed_bytes;
}

double estimate(const Elementwise::Args& args, const Context& context) {
  const double alone = elementwise_cpu::one_core_seconds(args);
  const int threads = threads_worth(args, context);
  const double streaming = worth_streaming(args) ? 0.75 : 1.01;
  // Memory serves two cores half again as fast as one; caches are each core's own.
  return alone * streaming * (threads == 1 ? 1.0 : 1.0 / std::min(threads, 4)) +
         (threads == 1 ? 0.0 : 2e-6);
}

void run(const Elementwise::Args& args, Context& context) {
  elementwise_cpu::with_runs(args, worth_streaming(args), [&](const auto& runs) {
    cpu::run_shares(threads_worth(args, context), [&](const cpu::Team& team) {
      // Shares of whole pages of the smallest type's result, so that no line has two writers.
      constexpr std::int64_t block = 4096;
      const cpu::Range blocks = team.share((args.size() + block - 1) / block);
      runs.compute(blocks.begin * block, std::min(blocks.end * block, args.size()));
    });
  });
}

const Rung<Elementwise> self{
    {.name = "threads", .step = 40, .after = "strided", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
