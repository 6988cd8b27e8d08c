// SPDX-License-Identifier: Apache-2.0
// transpose / simd
//
// Idea     a tile of 16 x 16 (4-byte elements; 64 x 64 of one byte, 4 x 4 of 16) is transposed in
//          registers: it is read in whole lines and written in whole lines, and the elements change
//          places by interleaving vectors.
// Changes  against blocked: 64 bytes per instruction; nothing waits for a line to be used up,
//          because a tile uses up all its lines at once. See detail/tile-inl.hpp.
// Cost     4-byte elements: 4 loads, 5 shuffles and a store for each 64 bytes, with AVX-512.
// Limits   one thread; a line of y is read before it is written, though every byte of it is new:
//          half as much traffic again. x and y dense along one axis each.
// Tried    rows of a tile loaded whole, and four rounds of shuffles: no faster, 2-core Zen 5 vCPU.
// Source   J. McCalpin and M. Smotherman, "Automatic benchmark generation for cache optimization of
//          matrix operations", 1995, for the blocks; the rounds are a perfect shuffle (H. Stone,
//          IEEE Trans. Comp. C-20, 1971).
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

namespace rung {
namespace {
using namespace transpose_cpu;

void run(const Transpose::Args& args, Context&) {
  if (args.moves.empty()) return;
  const Grid grid = cached_grid(args.moves);
  for_each_block(grid, {0, grid.size()},
                 [&](const Place& place) { transpose_block(block_of(args, place)); });
}

const Rung<Transpose> self{{.name = "simd",
                            .step = 30,
                            .after = "blocked",
                            .teaching = true,
                            .supports = require_dense,
                            .run = run}};

}  // namespace
}  // namespace rung
