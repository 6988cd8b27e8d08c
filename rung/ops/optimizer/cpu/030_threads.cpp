// SPDX-License-Identifier: Apache-2.0
// optimizer / threads
//
// Idea     chunks of parameters are divided among the threads; no parameter depends on another but
//          by the norm, whose squares are added up chunk by chunk, in one order, between two
//          barriers.
// Changes  against simd: all cores, and the same bits.
// Cost     as simd.
// Limits   every valid call.
// Tried    -
// Source   -
#include "rung/ops/optimizer/cpu/detail/steps.hpp"

namespace rung {
namespace {

double estimate(const Optimizer::Args& args, const Context&) {
  const double alone = optimizer_cpu::seconds(args);
  return optimizer_cpu::worth_a_team(args) ? alone / 2 : alone;
}

void run(const Optimizer::Args& args, Context& context) {
  optimizer_cpu::chunked(args, context, optimizer_cpu::vector_kernels(args.parameters.dtype),
                         optimizer_cpu::worth_a_team(args) ? context.threads() : 1);
}

const Rung<Optimizer> self{
    {.name = "threads", .step = 30, .after = "simd", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
