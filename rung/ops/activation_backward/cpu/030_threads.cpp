// SPDX-License-Identifier: Apache-2.0
// activation_backward / threads
//
// Idea     the elements are divided among the threads in equal shares, in blocks of whole lines: no
//          element depends on another.
// Changes  against simd: all cores.
// Cost     as simd.
// Limits   every valid call; one of a few microseconds stays on one thread.
// Tried    -
// Source   -
#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/activation_backward/cpu/detail/runs.hpp"

namespace rung {
namespace {

int threads_worth(const ActivationBackward::Args& args, const Context& context) {
  constexpr double worth_a_team = 8e-6;  // seconds of one core
  return activation_backward_cpu::seconds(args) < worth_a_team ? 1 : context.threads();
}

double estimate(const ActivationBackward::Args& args, const Context& context) {
  const double alone = activation_backward_cpu::seconds(args);
  return threads_worth(args, context) == 1 ? alone : alone / 2 + 2e-6;
}

void run(const ActivationBackward::Args& args, Context& context) {
  constexpr std::int64_t block = 4096;  // elements: whole lines of every type
  const std::int64_t count = args.elements.size();
  cpu::run_shares(threads_worth(args, context), [&](const cpu::Team& team) {
    const cpu::Range blocks = team.share(ceil_div(count, block));
    activation_backward_cpu::compute(args, blocks.begin * block,
                                     std::min(blocks.end * block, count));
  });
}

const Rung<ActivationBackward> self{
    {.name = "threads", .step = 30, .after = "simd", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
