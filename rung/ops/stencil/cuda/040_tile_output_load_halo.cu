// SPDX-License-Identifier: Apache-2.0
// stencil / the block covers the output tile and loads the halo
//
// Idea     the first of three ways to divide a tile: a block has a thread for each element of y.
//          What its masks cover is larger, by the halo: threads take turns until all of it is in
//          shared memory. Then each reads its window there.
// Changes  against window_sum_shared: two axes, and weights. The halo is no longer a case of its
//          own: one loop loads everything.
// Cost     a tile of 16 x 16 under a mask of m x n: (15 + m)(15 + n) loads for 256 m n uses. Loads
//          of the last turns keep few threads busy. Places outside the array are neither loaded nor
//          read: a corner tile of 8 x 8 with 5 x 5 (small arrays have such) loads 10 x 10 elements
//          for 37 x 37 uses: 13.69 each.
// Limits   f32; one or two axes, a contiguous mask. A load from shared memory for each
//          multiply-add.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, section 7.4.
#include "rung/ops/stencil/cuda/detail/constant_mask.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

/// Side of the tile of y, and of the block; the second one is for arrays that are followed by hand.
constexpr int side = 16;
constexpr int small_side = 8;

__global__ void stencil_tile_output_load_halo(Image p) {
  float* const tile = &shared<float>();  // of x: as large as all windows together
  const int height = static_cast<int>(blockDim.y) + p.mask_rows - 1;
  const int width = static_cast<int>(blockDim.x) + p.mask_columns - 1;
  const int first_row = static_cast<int>(blockIdx.y * blockDim.y) - p.origin_row;
  const int first_column = static_cast<int>(blockIdx.x * blockDim.x) - p.origin_column;
  const int down = static_cast<int>(threadIdx.y);
  const int across = static_cast<int>(threadIdx.x);
  for (int r = down; r < height; r += static_cast<int>(blockDim.y)) {
    for (int c = across; c < width; c += static_cast<int>(blockDim.x)) {
      if (p.is_ghost(first_row + r, first_column + c)) continue;
      tile[r * width + c] = p.element(first_row + r, first_column + c);
    }
  }
  __syncthreads();
  const int row = static_cast<int>(blockIdx.y * blockDim.y) + down;
  const int column = static_cast<int>(blockIdx.x * blockDim.x) + across;
  if (row >= p.rows || column >= p.columns) return;
  float sum = 0;
  for (int i = 0; i < p.mask_rows; ++i) {
    for (int j = 0; j < p.mask_columns; ++j) {
      if (p.is_ghost(row + i - p.origin_row, column + j - p.origin_column)) continue;
      sum += constant_mask[i * p.mask_columns + j] * tile[(down + i) * width + across + j];
    }
  }
  p.y[row * p.y_row + column] = p.scale * sum;
}

void run(const Stencil::Args& args, Context& context) {
  load_constant_mask(args, context);
  for_each_image(args, context, [&](const Image& p) {
    const bool is_small = p.rows * static_cast<std::int64_t>(p.columns) <= 256;
    const int threads = is_small ? small_side : side;
    const int height = threads + p.mask_rows - 1;
    const int width = threads + p.mask_columns - 1;
    launch(context,
           {.grid = {ceil_div(p.columns, threads), ceil_div(p.rows, threads)},
            .block = {threads, threads},
            .shared_bytes = static_cast<std::size_t>(height * width) * sizeof(float)},
           stencil_tile_output_load_halo, p);
  });
}

const Rung<Stencil> self{{.name = "tile_output_load_halo",
                          .step = 40,
                          .after = "window_sum_shared",
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports_image,
                          .run = run}};

}  // namespace
}  // namespace rung
