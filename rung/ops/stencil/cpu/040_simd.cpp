// SPDX-License-Identifier: Apache-2.0
// stencil / simd
//
// Idea     vectors of neighbouring columns. Rows are first made lines: converted to the type of the
//          sums, with what lies outside the array in place, so that the loop over taps is a load
//          and a multiply-add for each vector and knows of no edge. The lines under the mask are
//          kept in a ring; four vectors of sums stay in registers while all taps pass.
// Changes  against tiled: no sum is loaded or stored between taps; every type, edge and stride.
//          Separable masks are summed along the row as a line is made, and windows in 1, 2, 4 ...
//          neighbours, then down the rows in blocks (block_sums): a window of 31 x 31 takes half
//          as long again as one of 5 x 5.
// Cost     K multiply-adds per element, 16 f32 an instruction with AVX-512; m + n for vectors, at
//          most 11 additions for a window of any size. x read once (a band of 128 rows reads those
//          above and below it again) and y written once.
// Limits   one thread. Rows that are not contiguous are gathered. A separable mask of three axes
//          goes through memory once more.
// Tried    -
// Source   block sums: see 035_block_sums.cpp.
#include "rung/ops/stencil/cpu/detail/engine.hpp"

namespace rung {
namespace {

double estimate(const Stencil::Args& args, const Context&) { return stencil_cpu::seconds(args, 1); }

void run(const Stencil::Args& args, Context& context) { stencil_cpu::run(args, context, 1); }

const Rung<Stencil> self{
    {.name = "simd", .step = 40, .after = "tiled", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
