// SPDX-License-Identifier: Apache-2.0
// elementwise / threads
//
// Idea     A team partitions the elements. Results too large for the caches are written by
//          non-temporal stores, which do not read the line that they overwrite: a quarter of what
//          add moves.
// Changes  Against strided: threads, and non-temporal stores.
// Cost     Every operand loaded once, the result stored once, nothing else.
// Limits   Every valid call. Problems of a few microseconds run on one thread, as waking another
//          takes about as long.
// Source   Intel, Optimization Reference Manual, "Non-temporal stores".
#include "rung/cpu/team.hpp"
#include "rung/ops/elementwise/cpu/detail/estimate.hpp"
#include "rung/ops/elementwise/cpu/detail/kernels.hpp"

namespace rung {
namespace {

struct Tuning {
  double seconds_worth_a_team = 6e-6;  // of one core: below, a second thread does not pay
  double seconds_of_team = 2e-6;
  double seconds_of_layout = 20e-9;  // to look at strides, which simd does not do
  double streamed_bytes = 6 << 20;   // of the result: beyond, it would not stay in the caches
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
  const double streaming = worth_streaming(args) ? 0.75 : 1;
  // Memory serves two cores half again as fast as one; caches are each core's own.
  return alone * streaming / std::min(threads, 4) +
         (threads == 1 ? tuning.seconds_of_layout : tuning.seconds_of_team);
}

void run(const Elementwise::Args& args, Context& context) {
  const bool streaming = worth_streaming(args);
  // Shares of whole pages of the smallest type's result, so that no line has two writers.
  constexpr std::int64_t block = 4096;
  cpu::run_shares(threads_worth(args, context), [&](const cpu::Team& team) {
    const cpu::Range blocks = team.share((args.size() + block - 1) / block);
    elementwise_cpu::strided(
        args, {blocks.begin * block, std::min(blocks.end * block, args.size())}, streaming);
  });
}

const Rung<Elementwise> self{
    {.name = "threads", .step = 40, .after = "strided", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
