// SPDX-License-Identifier: Apache-2.0
// norm / threads
//
// Idea     rows are divided among threads in equal shares; few long rows are shared, block by
//          block: statistics of the blocks, a barrier, then y. Blocks do not depend on the threads,
//          so the bits do not either.
// Changes  against row_pipeline: all cores.
// Cost     as row_pipeline; the cores share the memory bandwidth.
// Limits   waking a thread costs microseconds: calls of fewer than 32768 elements stay on one.
// Source   -
#include "rung/ops/norm/cpu/detail/kernels.hpp"

namespace rung {
namespace {

double estimate(const Norm::Args& args, const Context& context) {
  return norm_cpu::seconds(args, context.threads());
}

void run(const Norm::Args& args, Context& context) {
  norm_cpu::normalise(args, context, context.threads());
}

const Rung<Norm> self{
    {.name = "threads", .step = 90, .after = "row_pipeline", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
