// SPDX-License-Identifier: Apache-2.0
// norm / threads
//
// Idea     rows are dealt to threads in equal shares; few long rows are shared, block by block:
//          statistics of the blocks, a barrier, then y. Blocks do not depend on the threads, so the
//          bits do not either.
// Changes  against simd: all cores.
// Cost     as simd.
// Limits   two cores of one memory: half as fast again, not twice, where x comes from there.
// Tried    on a 2-core Zen 5 vCPU: short rows in fours, f32 1024x256 31.5 us in place of 36; a
//          function of its own for each presence of gamma and beta, called +3 to +8 %, inlined +17
//          %. 65536x256, one thread, a copy in 2.5 ms: four rows step by step 2.60, or 2.47 with x
//          fetched 16 KiB ahead in place of 8; three rows in turn, each as a whole, 2.42, with 12
//          or 16 KiB 2.5, and 2.43 to 2.54 where x is fetched while squares are summed; two or four
//          of each 2.43, 2.39. Vector by vector (detail/stream-inl.hpp) it was tried on Zen 4
//          alone: 27 to 33 GB/s went to 38 to 40; with sums that the compiler spilled
//          around a call, 26.
// Source   -
#include "rung/ops/norm/cpu/detail/kernels.hpp"

namespace rung {
namespace {

double estimate(const Norm::Args& args, const Context& context) {
  // A hair less than simd, so that it is chosen where they would do the same.
  return 0.999 * norm_cpu::seconds(args, context.threads());
}

void run(const Norm::Args& args, Context& context) {
  norm_cpu::normalise(args, context, context.threads());
}

const Rung<Norm> self{
    {.name = "threads", .step = 50, .after = "simd", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
