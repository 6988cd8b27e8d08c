// SPDX-License-Identifier: Apache-2.0
// activation_backward / threads
//
// Idea     A team partitions the elements into equal shares, in blocks of whole cache lines.
// Changes  Against simd: the same kernel on every core.
// Cost     As simd.
// Limits   Every valid call; problems of a few microseconds run on one thread.
#include <algorithm>

#include "rung/core/integer.hpp"
#include "rung/cpu/worth.hpp"
#include "rung/ops/activation_backward/cpu/detail/kernels.hpp"

namespace rung {
namespace {

int threads_of(const ActivationBackward::Args& args, const Context& context) {
  using enum ActivationFunction;
  constexpr double of_each = 17e3;  // minimum operations per thread
  const bool has_exponential = args.function == gelu || args.function == silu;
  const double each = args.flat() ? (has_exponential ? 2 : 1) : 7;
  return cpu::threads_worth(static_cast<double>(args.dx.size()) * each, of_each, context.threads());
}

Work work(const ActivationBackward::Args& args, const Context& context) {
  return {.threads = threads_of(args, context)};
}

void run(const ActivationBackward::Args& args, Context& context) {
  constexpr std::int64_t block = 4096;  // elements: whole cache lines of every type
  const std::int64_t count = args.elements.size();
  const int threads = threads_of(args, context);
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range blocks = team.share(ceil_div(count, block));
    activation_backward_cpu::compute(args,
                                     {blocks.begin * block, std::min(blocks.end * block, count)});
  });
}

const Rung<ActivationBackward> self{
    {.name = "threads", .step = 30, .after = "simd", .work = work, .run = run}};

}  // namespace
}  // namespace rung
