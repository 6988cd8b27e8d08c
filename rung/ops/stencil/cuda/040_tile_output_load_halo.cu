// SPDX-License-Identifier: Apache-2.0
// stencil / the block covers the output tile and loads the halo
//
// Idea     The first of three ways to map threads to a tile: one thread per element of y. The input
//          tile exceeds the output tile by the halo; the block loads it into shared memory in a
//          strided loop. Then each thread reads its window from shared memory.
// Changes  Against window_sum_shared: two axes, and weights. The halo is no special case: one loop
//          loads the whole input tile.
// Cost     A tile of 16 x 16 under a mask of m x n: (15 + m)(15 + n) loads for 256 m n uses; the
//          last iterations of the load loop keep few threads busy. Elements outside the array are
//          neither loaded nor read: a corner tile of 8 x 8 with 5 x 5 (on small arrays) loads 10 x
//          10 elements for 37 x 37 uses, 13.69 uses per load.
// Limits   f32; one or two axes, a contiguous mask. One load from shared memory per multiply-add.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, section 7.4.
#include "rung/ops/stencil/cuda/detail/constant_mask.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

/// Side of the tile of y and of the block; the smaller side is for arrays small enough to trace by
/// hand.
constexpr int side = 16;
constexpr int small_side = 8;

__global__ void stencil_tile_output_load_halo(Image p) {
  float* const tile = &shared<float>();  // all elements of x under the windows of the block
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
