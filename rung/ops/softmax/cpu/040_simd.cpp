// SPDX-License-Identifier: Apache-2.0
// softmax / simd
//
// Idea     vectors, and an exponential of our own for them: 2^t = 2^n p(t - n) with a polynomial of
//          degree 5, its factor log2(e) folded into the scale. The row stays in L1: maximum, then
//          exponentials into a scratch row with four sums side by side, then one factor for all.
//          Along another axis a vector holds as many columns. Large results go around the caches.
// Changes  against online: three passes again, but over a row that is in L1 by then: the second
//          exponential costs more than reading it back. Columns and rows longer than 64 Ki
//          elements, which would not stay, do go online: maxima and sums of pieces, brought
//          together.
//          The three passes are of three rows and share a loop, vector by vector: one row is
//          written while the next has its exponentials made and the one after that is read.
//          Backward, the gradient of one row, from its end, and the sum of the next share a loop.
// Cost     x read once from memory and y written once, 11 vector operations an exponential.
//          Columns that exceed L2, and long rows: x is read twice.
// Limits   one thread. Rows that are neither contiguous nor side by side are gathered first.
// Tried    on a 2-core Zen 5 vCPU, none faster: Estrin's scheme; integer addition for vscalefps;
//          prefetching what is about to be written. vreduceps for rounding and subtracting is none
//          by itself (1.39 ns a vector against 1.29) but needs no bound for -infinity: 1.19.
//          Three rows by turns of 512 elements instead of vectors, around the caches: 2.5 ms for
//          4096x4096 where a vector at a time took 2.6 (y from its beginning then); on a 2-core Zen
//          4 vCPU, y from its end, 27 and 30 GB/s (two threads 44 and 44), of rows of 512 and 1024
//          29 and 34. 6.4 ms if nothing is prefetched; asking for pages of y ahead changes nothing.
//          Backward, 4096x4096: prefetching the next row while one is written, 5.6 ms either way;
//          prefetching 1 to 32 KiB ahead of both operands 0 to -10 %; eight vectors of each in turn
//          and lines asked for 4 KiB ahead, 4.8 in place of 4.65, and 2.25 either way with two
//          threads; rows from the last to the first, 6.4; a copy of the row in L1 5.8. 8x1000000:
//          the results of one row interleaved with the sums of the next, piece by piece, 1.8 ms
//          against 1.7; on Zen 4, in one loop, 17 GB/s against 19 (two threads 25 and 30). There,
//          exponentials of such rows kept in L3 instead of made again: with one thread 19 against
//          18, with two 28 against 30; of bf16 9.6 against 6.8.
// Source   F. de Dinechin and others, expf in CORE-MATH, for the argument; Remez for the
//          polynomial.
#include "rung/ops/softmax/cpu/detail/estimate.hpp"
#include "rung/ops/softmax/cpu/detail/kernels.hpp"

namespace rung {
namespace {

double estimate(const Softmax::Args& args, const Context&) { return softmax_cpu::seconds(args, 1); }

void run(const Softmax::Args& args, Context& context) { softmax_cpu::run(args, context, 1); }

const Rung<Softmax> self{
    {.name = "simd", .step = 40, .after = "online", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
