// SPDX-License-Identifier: Apache-2.0
// stencil / the halo from the cache
//
// Idea     The third mapping: shared memory holds only the inner tile, one element per thread. Taps
//          in the halo are loaded from global memory: the halo belongs to the inner tiles of
//          neighboring blocks, whose loads have usually brought it into L2 or L1.
// Changes  Against tile_input: every thread loads, every thread computes, and no element is in the
//          shared memory of two blocks. Each tap tests whether its element is inside the tile.
// Cost     A tile of 16 x 16 under 9 x 5: of 11,520 taps, 9,176 are loaded from shared memory and
//          2,344 from global memory.
// Limits   f32; one or two axes, a contiguous mask. Warps diverge at the border of a tile. The
//          wider the mask, the fewer taps are inside the tile.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, section 7.5.
#include "rung/ops/stencil/cuda/detail/constant_mask.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int side = 16;

struct TileBuffer {
  float at[side][side];
};

__global__ void stencil_halo_from_cache(Image p) {
  TileBuffer& tile = shared<TileBuffer>();
  const int down = static_cast<int>(threadIdx.y);
  const int across = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(blockIdx.y) * side + down;
  const int column = static_cast<int>(blockIdx.x) * side + across;
  if (!p.is_ghost(row, column)) tile.at[down][across] = p.element(row, column);
  __syncthreads();
  if (row >= p.rows || column >= p.columns) return;
  float sum = 0;
  for (int i = 0; i < p.mask_rows; ++i) {
    for (int j = 0; j < p.mask_columns; ++j) {
      const int r = down + i - p.origin_row;
      const int c = across + j - p.origin_column;
      if (p.is_ghost(row - down + r, column - across + c)) continue;
      const float weight = constant_mask[i * p.mask_columns + j];
      if (r >= 0 && r < side && c >= 0 && c < side) {
        sum += weight * tile.at[r][c];
      } else {
        sum += weight * p.element(row - down + r, column - across + c);
      }
    }
  }
  p.y[row * p.y_row + column] = p.scale * sum;
}

void run(const Stencil::Args& args, Context& context) {
  load_constant_mask(args, context);
  for_each_image(args, context, [&](const Image& p) {
    launch(context,
           {.grid = {ceil_div(p.columns, side), ceil_div(p.rows, side)},
            .block = {side, side},
            .shared_bytes = sizeof(TileBuffer)},
           stencil_halo_from_cache, p);
  });
}

const Rung<Stencil> self{{.name = "halo_from_cache",
                          .step = 60,
                          .after = "tile_input_coarsened",
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports_image,
                          .run = run}};

}  // namespace
}  // namespace rung
