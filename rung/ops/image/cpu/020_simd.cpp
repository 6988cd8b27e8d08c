// SPDX-License-Identifier: Apache-2.0
// image / simd
//
// Idea     vectors of neighboring elements. Of pixels of three or four channels grey takes a
//          vector of each channel, by loads that take them apart; everything else leaves channels
//          together: the neighbor in a row of R G B R G B is the element three further on. The
//          ends of rows are copied, with the border's nearest pixels around them, so that no kernel
//          knows of edges.
// Changes  against naive: 16 to 64 elements an instruction. Gaussians are separable: along the row
//          once, down the last rows from a ring of lines, two of them a multiply-add. The box keeps
//          the sums of columns from row to row, adds the row that enters and takes off the one that
//          leaves: of whole numbers, which lose nothing by that.
// Cost     a Gaussian of u8 2 T multiply-adds per result, 32 a vector; a box two operations down
//          the columns, and along the row as many as the best split into sums of sums has: 6 for 7
//          neighbors, 12 for 31. x read once (a band of 128 rows reads those above and below it
//          again) and y written once.
// Limits   one thread. Pixels that are not beside each other are gathered. f32 has no box of
//          running sums: rounding errors, an infinity or a NaN would stay in them for ever.
// Tried    -
// Source   M. McDonnell, Box-filtering techniques, Computer Graphics and Image Processing 17, 1981.
#include "rung/ops/image/cpu/detail/engine.hpp"

namespace rung {
namespace {

double estimate(const Image::Args& args, const Context&) { return image_cpu::seconds(args, 1); }

void run(const Image::Args& args, Context& context) { image_cpu::run(args, context, 1); }

const Rung<Image> self{
    {.name = "simd", .step = 20, .after = "naive", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
