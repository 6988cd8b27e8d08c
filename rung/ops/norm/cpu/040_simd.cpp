// SPDX-License-Identifier: Apache-2.0
// norm / SIMD
//
// Idea     vectors along a contiguous row, a block of 4096 elements at a time, so that the second
//          and third look at an element find it in L1; across rows where those lie side by side;
//          a row that lies in neither way is copied first. The mean is corrected by the mean of
//          what it leaves over, which costs one addition and keeps all digits (norm.hpp).
// Changes  against welford: no division, eight independent sums of 8 or 16 elements each, and back
//          to two passes, because only the first comes from memory.
// Cost     x read and y written once; 3 loads, 7 operations and a store for each vector.
// Limits   one thread.
// Tried    on a 2-core Zen 5 vCPU, RMS norm of 4096x4096, written while the next row is read: 4.3
//          ms if nothing is prefetched, 2.9 with 4 KiB ahead, 2.7 with 8, 3.4 with 16; blocks of
//          1024 elements of each by turns 5.0; by way of a copy in L1 2.5, where from the end of
//          the row it takes 2.7. Layer norm so, with a pass for the moments between: 5.7 in place
//          of 3.2.
// Source   T. Chan, G. Golub & R. LeVeque, Algorithms for computing the sample variance, 1983.
#include "rung/ops/norm/cpu/detail/kernels.hpp"

namespace rung {
namespace {

double estimate(const Norm::Args& args, const Context&) { return norm_cpu::seconds(args, 1); }

void run(const Norm::Args& args, Context& context) { norm_cpu::normalise(args, context, 1); }

const Rung<Norm> self{
    {.name = "simd", .step = 40, .after = "welford", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
