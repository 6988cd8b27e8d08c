// SPDX-License-Identifier: Apache-2.0
// softmax / threads
//
// Idea     a team of threads shares the rows or blocks of columns; long rows they share one by one.
// Changes  against simd: the same kernels on every core.
// Cost     the same; the memory bus is shared.
// Limits   waking the team costs microseconds: small calls are left to simd.
// Tried    -
// Source   -
#include "rung/ops/softmax/cpu/detail/estimate.hpp"
#include "rung/ops/softmax/cpu/detail/kernels.hpp"

namespace rung {
namespace {

double estimate(const Softmax::Args& args, const Context& context) {
  // With one thread the same as simd: a hair more, so that the choice is not a toss.
  return 1.001 * softmax_cpu::seconds(args, softmax_cpu::useful_threads(args, context.threads()));
}

void run(const Softmax::Args& args, Context& context) {
  softmax_cpu::run(args, context, softmax_cpu::useful_threads(args, context.threads()));
}

const Rung<Softmax> self{
    {.name = "threads", .step = 50, .after = "simd", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
