// SPDX-License-Identifier: Apache-2.0
// stencil / the block covers the input tile
//
// Idea     The second mapping: one thread per element of the input tile, halo included. Every
//          thread loads one element; threads without an element of y then idle.
// Changes  Against tile_output_load_halo: the load is one statement, at the price of threads that
//          idle in the loop over the mask: more than half of 24 x 24 threads for a mask of 9 x 9.
// Cost     A tile of 16 x 16 under 9 x 9: 576 loads for 256 x 81 uses, 36.00 uses per load; 2,304
//          bytes of shared memory per block, 6,912 per SM of 2048 threads, which holds three
//          blocks.
// Limits   f32; one or two axes, a contiguous mask. A block has (15 + m)(15 + n) threads, which
//          limits masks to 17 x 17.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, chapter 8.
#include "rung/ops/stencil/cuda/detail/constant_mask.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int side = 16;  // side of the tile of y

__global__ void stencil_tile_input(Image p) {
  float* const tile = &shared<float>();
  const int width = static_cast<int>(blockDim.x);
  const int down = static_cast<int>(threadIdx.y);
  const int across = static_cast<int>(threadIdx.x);
  // Position of the element that the thread loads: the first tap of the element of y that it
  // computes.
  const int from_row = static_cast<int>(blockIdx.y) * side + down - p.origin_row;
  const int from_column = static_cast<int>(blockIdx.x) * side + across - p.origin_column;
  if (!p.is_ghost(from_row, from_column)) {
    tile[down * width + across] = p.element(from_row, from_column);
  }
  __syncthreads();
  const int row = from_row + p.origin_row;
  const int column = from_column + p.origin_column;
  if (down >= side || across >= side || row >= p.rows || column >= p.columns) return;
  float sum = 0;
  for (int i = 0; i < p.mask_rows; ++i) {
    for (int j = 0; j < p.mask_columns; ++j) {
      if (p.is_ghost(row + i - p.origin_row, column + j - p.origin_column)) continue;
      sum += constant_mask[i * p.mask_columns + j] * tile[(down + i) * width + across + j];
    }
  }
  p.y[row * p.y_row + column] = p.scale * sum;
}

Support supports(const Stencil::Args& args, const Context& context) {
  constexpr int max_threads = 1024;
  if ((side - 1 + args.rows().taps) * (side - 1 + args.columns().taps) > max_threads) {
    return unsupported("the input tile would have more than 1024 elements, one thread each");
  }
  return supports_image(args, context);
}

void run(const Stencil::Args& args, Context& context) {
  load_constant_mask(args, context);
  for_each_image(args, context, [&](const Image& p) {
    const int height = side + p.mask_rows - 1;
    const int width = side + p.mask_columns - 1;
    launch(context,
           {.grid = {ceil_div(p.columns, side), ceil_div(p.rows, side)},
            .block = {width, height},
            .shared_bytes = static_cast<std::size_t>(height * width) * sizeof(float)},
           stencil_tile_input, p);
  });
}

const Rung<Stencil> self{{.name = "tile_input",
                          .step = 50,
                          .after = "tile_output_load_halo",
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
