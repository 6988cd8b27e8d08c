// SPDX-License-Identifier: Apache-2.0
// stencil / simd
//
// Idea     vectors of neighboring columns. Sums stay in registers while all taps pass: four rows
//          of four vectors (AVX2: two), so that a load of x serves four rows of y, and one of a
//          weight four vectors. Where all taps are inside the array, rows of x are read in place;
//          others are first made lines: converted to the type of the sums, with what is outside
//          in place, so that no kernel knows of edges. A ring keeps the lines under the masks.
// Changes  against tiled: no sum is loaded or stored between taps; every type, edge and stride.
//          Separable masks are summed along the row as a line is made, and windows in 1, 2, 4 ...
//          neighbors, then down the rows in blocks (block_sums). Under a mask of several planes, a
//          band of rows is made of one plane after the other, its lines still in L2. Results that
//          would not stay in a cache are written past it.
// Cost     K multiply-adds per element, 16 f32 an instruction with AVX-512; m + n for vectors, at
//          most 11 additions for a window of any size. x read once (a band of 128 rows reads those
//          above and below it again) and y written once.
// Limits   one thread. Rows that are not contiguous are gathered. A separable mask of three axes
//          goes through memory once more. Along a row every tap is an unaligned load.
// Tried    see EXPERIMENTS.md.
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
