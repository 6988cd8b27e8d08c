// SPDX-License-Identifier: Apache-2.0
// pool / separable
//
// Idea     a maximum of maxima, a sum of sums: the rows of a window are joined column by column
//          into a line with the padding at its ends, and windows are taken along that. Windows that
//          overlap in a row share what their columns have come to, and no window is at an edge.
// Changes  against simd: kh + kw operations per output instead of kh kw; lines are kept in L1 in
//          the arithmetic type, so that every type, kind and stride is done by the same loops.
// Cost     x is read kh / sh times, from the caches after the first, and written once to a line.
// Limits   every valid call; one thread. Weighted sums and positions of maxima do not come apart:
//          for these all rows of a window are kept, and kh kw operations remain.
// Tried    -
// Source   van Herk, A fast algorithm for local minimum and maximum filters, 1992, has the step
//          that would follow: 3 operations whatever kw is, worth it for larger windows than pooling
//          has.
#include "rung/ops/pool/cpu/detail/call.hpp"

namespace rung {
namespace {

double estimate(const Pool::Args& args, const Context&) { return pool_cpu::seconds(args); }

void run(const Pool::Args& args, Context& context) { pool_cpu::pool_on(args, context, 1); }

const Rung<Pool> self{
    {.name = "separable", .step = 25, .after = "simd", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
