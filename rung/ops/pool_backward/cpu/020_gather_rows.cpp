// SPDX-License-Identifier: Apache-2.0
// pool_backward / gather rows
//
// Idea     gather: for each row of dx, all windows over it are found, and what they give is added
//          up in a line in L1, in the arithmetic type. It is written once, when it is done.
// Changes  against naive: dx is neither zeroed nor read; no element depends on another row's, and
//          small types are summed in f32. The average's quotients are added over the rows of
//          windows first, then spread along the columns; with contiguous channels, vectors lie
//          along those.
// Cost     dy is read kh / sh times, from the caches after the first.
// Limits   every valid call; one thread.
// Tried    maxima row by row: each window is looked at kh times, 41 ms in place of 11 for f32
//          16x64x112x112,k=3,s=2,p=1 on a 2-core Zen 5 vCPU; 34 without branches.
// Source   -
#include "rung/ops/pool_backward/cpu/detail/call.hpp"

namespace rung {
namespace {

double estimate(const PoolBackward::Args& args, const Context&) {
  return pool_backward_cpu::seconds(args);
}

void run(const PoolBackward::Args& args, Context& context) {
  pool_backward_cpu::gather_on(args, context, 1);
}

const Rung<PoolBackward> self{
    {.name = "gather_rows", .step = 20, .after = "naive", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
