// SPDX-License-Identifier: Apache-2.0
// conv / threads
//
// Idea     panels of pixels, and where there are few of them blocks of filters, are shared among
//          the threads: none depends on another.
// Changes  against direct_simd: all cores. Weights that have to be packed are packed together
//          first.
// Cost     as direct_simd.
// Limits   every valid call.
// Tried    -
// Source   -
#include "rung/ops/conv/cpu/detail/call.hpp"

namespace rung {
namespace {

double estimate(const Conv::Args& args, const Context& context) {
  return conv_cpu::seconds(args, context.threads());
}

void run(const Conv::Args& args, Context& context) {
  conv_cpu::direct_on(args, context, context.threads());
}

const Rung<Conv> self{
    {.name = "threads", .step = 90, .after = "direct_simd", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
