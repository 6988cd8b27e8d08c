// SPDX-License-Identifier: Apache-2.0
// stencil / the block covers a quarter of the input tile
//
// Idea     Thread coarsening: each thread of the same block loads 2 x 2 elements of x and computes
//          as many elements of y. The tile has four times the area, its halo twice the length.
// Changes  Against tile_input: the tile is larger than the block. The tile of x is 48 x 48 for any
//          mask; the tile of y is 48 x 48 less the halo.
// Cost     Under 9 x 9, a tile of 40 x 40: 2,304 loads for 1,600 x 81 uses, 56.25 uses per load
//          (tile_input: 36.00).
// Limits   f32; one or two axes, a contiguous mask.
#include "rung/ops/stencil/cuda/detail/constant_mask.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int block_side = 24;
constexpr int side = 2 * block_side;  // side of the tile of x

struct TileBuffer {
  float at[side][side];
};

__global__ void stencil_tile_input_coarsened(Image p) {
  TileBuffer& tile = shared<TileBuffer>();
  const int rows = side - (p.mask_rows - 1);  // rows of the tile of y
  const int columns = side - (p.mask_columns - 1);
  const int first_row = static_cast<int>(blockIdx.y) * rows;
  const int first_column = static_cast<int>(blockIdx.x) * columns;
  for (int r = static_cast<int>(threadIdx.y); r < side; r += block_side) {
    for (int c = static_cast<int>(threadIdx.x); c < side; c += block_side) {
      const int from_row = first_row + r - p.origin_row;
      const int from_column = first_column + c - p.origin_column;
      if (!p.is_ghost(from_row, from_column)) tile.at[r][c] = p.element(from_row, from_column);
    }
  }
  __syncthreads();
  for (int r = static_cast<int>(threadIdx.y); r < rows; r += block_side) {
    for (int c = static_cast<int>(threadIdx.x); c < columns; c += block_side) {
      const int row = first_row + r;
      const int column = first_column + c;
      if (row >= p.rows || column >= p.columns) continue;
      float sum = 0;
      for (int i = 0; i < p.mask_rows; ++i) {
        for (int j = 0; j < p.mask_columns; ++j) {
          if (p.is_ghost(row + i - p.origin_row, column + j - p.origin_column)) continue;
          sum += constant_mask[i * p.mask_columns + j] * tile.at[r + i][c + j];
        }
      }
      p.y[row * p.y_row + column] = p.scale * sum;
    }
  }
}

void run(const Stencil::Args& args, Context& context) {
  load_constant_mask(args, context);
  for_each_image(args, context, [&](const Image& p) {
    const int rows = side - (p.mask_rows - 1);
    const int columns = side - (p.mask_columns - 1);
    launch(context,
           {.grid = {ceil_div(p.columns, columns), ceil_div(p.rows, rows)},
            .block = {block_side, block_side},
            .shared_bytes = sizeof(TileBuffer)},
           stencil_tile_input_coarsened, p);
  });
}

const Rung<Stencil> self{{.name = "tile_input_coarsened",
                          .step = 55,
                          .after = "tile_input",
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports_image,
                          .run = run}};

}  // namespace
}  // namespace rung
