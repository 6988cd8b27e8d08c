// SPDX-License-Identifier: Apache-2.0
// loss / threads
//
// Idea     chunks of rows are divided among the threads; each chunk's losses are added up in one
//          order, and the chunks' sums too, so that the bits do not depend on the threads.
// Changes  against simd: all cores. Where labels may be ignored, the threads first count those that
//          are not, chunk by chunk: the gradient is divided by that number.
// Cost     as simd; two barriers at most.
// Limits   every valid call; rows of x or target that are not contiguous are computed without
//          vectors.
// Tried    -
// Source   -
#include "rung/ops/loss/cpu/detail/rows.hpp"

namespace rung {
namespace {

double estimate(const Loss::Args& args, const Context&) { return loss_cpu::chunked_seconds(args); }

void run(const Loss::Args& args, Context& context) {
  loss_cpu::chunked(args, context, context.threads());
}

const Rung<Loss> self{
    {.name = "threads", .step = 40, .after = "simd", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
