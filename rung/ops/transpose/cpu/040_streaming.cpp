// SPDX-License-Identifier: Apache-2.0
// transpose / streaming
//
// Idea     a line of y that is going to be overwritten whole need not be read: streaming stores
//          write it without that read. x is taken in bands of rows as high as two lines of y (three
//          where rows of y do not begin with one), and panels of up to 1024 columns: few enough
//          that the pages of y's rows stay in the TLB from one band to the next. Lines of x are
//          fetched ahead, because there are more rows in a band than the hardware's prefetchers
//          follow. With AVX-512, elements of 4 bytes or more and rows of x that are no multiple of
//          4 KiB apart, bands go down instead, four lines of x wide, and a tile leaves line by line
//          while the next is loaded (detail/down-inl.hpp).
// Changes  against simd: a third less traffic. Rows of y that do not begin with a line are put
//          together line by line in scratch memory, so that odd sizes take the same way.
// Cost     every byte of x and y once, as a copy.
// Limits   memory, one thread; a waste where y fits the caches and will be read there next. x and y
//          dense along one axis each.
// Tried    on a 2-core Zen 5 vCPU, 8192 x 8192 f32: bands of one line -40 %, of three -5 to -8 %,
//          of four -10 %; a tile put into a buffer in L1 first, so that 256 or 512 bytes of a row
//          of y leave together -15 %; x copied to L2 row by row first 0 to -20 %; panels of 512
//          columns as good, of 256 -3 %, of 128 -15 %; lines fetched ahead into L1 in place of L2
//          -15 %, and not at all 0 to -10 %. 8191 x 8193: bands of two or four lines -10 %; rows of
//          y combined in a buffer in place of registers -20 %. Bands down, one thread, 8191 x
//          8193 in 15 ms: 16 with 3 lines, 24 with 1; fetching into L1 20; without fetching the
//          line that a tile of misaligned rows reaches into 62. Tiles that leave all at once, 22
//          to 26, are no better (22 to 25) if they leave for one place after the other: it does not
//          matter where lines go but that stores come in bunches. 8192 x 8192: bands down 20 to 35
//          in place of 18; along rows in panels of 512, leaving line by line, 16.
// Source   streaming stores as in STREAM (J. McCalpin, 1995).
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

namespace rung {
namespace {
using namespace transpose_cpu;

void run(const Transpose::Args& args, Context& context) {
  if (args.moves.empty()) return;
  auto* const scratch = static_cast<std::byte*>(context.workspace(panel_scratch));
  constexpr std::int64_t whole = std::int64_t{1} << 62;
  const Grid grid = streaming_grid(args.moves, whole);
  for_each_block(grid, {0, grid.size()},
                 [&](const Place& place) { stream_panel(block_of(args, place), scratch); });
}

const Rung<Transpose> self{{.name = "streaming",
                            .step = 40,
                            .after = "simd",
                            .teaching = true,
                            .supports = require_dense,
                            .run = run}};

}  // namespace
}  // namespace rung
