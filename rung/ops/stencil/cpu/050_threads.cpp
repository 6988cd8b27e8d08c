// SPDX-License-Identifier: Apache-2.0
// stencil / threads
//
// Idea     a team shares the bands of rows and panels of columns.
// Changes  against simd: the same lines on every core.
// Cost     the same; the memory bus is shared.
// Limits   waking the team takes microseconds: small calls are left to one thread.
// Tried    -
// Source   -
#include "rung/ops/stencil/cpu/detail/engine.hpp"

namespace rung {
namespace {

double estimate(const Stencil::Args& args, const Context& context) {
  // With one thread the same as simd: a hair more, so that the choice is not a toss.
  return 1.001 * stencil_cpu::seconds(args, stencil_cpu::useful_threads(args, context));
}

void run(const Stencil::Args& args, Context& context) {
  stencil_cpu::run(args, context, stencil_cpu::useful_threads(args, context));
}

const Rung<Stencil> self{
    {.name = "threads", .step = 50, .after = "simd", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
