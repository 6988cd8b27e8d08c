// SPDX-License-Identifier: Apache-2.0
// activation_backward / threads
//
// Idea     A team partitions the elements into equal shares, in blocks of whole cache lines.
// Changes  Against simd: the same kernel on every core.
// Cost     As simd.
// Limits   Every valid call; one of a few microseconds runs on one thread.
#include <algorithm>

#include "rung/core/integer.hpp"
#include "rung/cpu/worth.hpp"
#include "rung/ops/activation_backward/cpu/detail/kernels.hpp"

namespace rung {
namespace {

/// Time on one thread of a 2-core Zen 5 vCPU.
double seconds_of(const ActivationBackward::Args& args) {
  using enum ActivationFunction;
  const bool has_exponential = args.function == gelu || args.function == silu;
  const double each = args.flat() ? (has_exponential ? 0.6e-9 : 0.3e-9) : 2e-9;
  return static_cast<double>(args.dx.size()) * each;
}

void run(const ActivationBackward::Args& args, Context& context) {
  constexpr std::int64_t block = 4096;  // elements: whole lines of every type
  const std::int64_t count = args.elements.size();
  const int threads = cpu::threads_worth(seconds_of(args), context.threads());
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range blocks = team.share(ceil_div(count, block));
    activation_backward_cpu::compute(args,
                                     {blocks.begin * block, std::min(blocks.end * block, count)});
  });
}

const Rung<ActivationBackward> self{{.name = "threads", .step = 30, .after = "simd", .run = run}};

}  // namespace
}  // namespace rung
