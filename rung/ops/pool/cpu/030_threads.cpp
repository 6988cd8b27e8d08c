// SPDX-License-Identifier: Apache-2.0
// pool / threads
//
// Idea     A team divides the output rows, of one channel or of all, into equal shares: none
//          depends on another.
// Changes  Against separable: every core.
// Cost     As separable.
// Limits   Every valid call; memory-bound beyond the caches.
#include <algorithm>

#include "rung/ops/pool/cpu/detail/kernels.hpp"

namespace rung {
namespace {
using namespace pool_cpu;

double estimate(const Pool::Args& args, const Context&) { return seconds(args); }

void run(const Pool::Args& args, Context& context) {
  const Kernel kernel = kernel_for(args);
  const std::int64_t most = is_worth_a_team(args) ? context.threads() : 1;
  run_kernel(kernel, args, context, static_cast<int>(std::min(most, kernel.units)));
}

const Rung<Pool> self{
    {.name = "threads", .step = 30, .after = "separable", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
