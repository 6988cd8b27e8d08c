// SPDX-License-Identifier: Apache-2.0
// stencil / the block covers the input tile, 3-D
//
// Idea     One thread per element of the input tile, halo included. Every thread loads one element;
//          threads of the shell have no element of y and then idle.
// Changes  Against tile_output_3d: the load is one statement, at the price of idle threads: 488 of
//          10 x 10 x 10 for a mask of 3 x 3 x 3, nearly half.
// Cost     As tile_output_3d: 1000 loads for 512 x 27 uses under 3 x 3 x 3.
// Limits   f32; three axes, a contiguous mask. 1024 threads per block limit the tile to 8, 4, 2 or
//          1 planes of 8 x 8 elements of y, the most that fit: 8 planes under 3 x 3 x 3, fewer
//          under any mask with a side above 3.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, chapter 8.
#include "rung/ops/stencil/cuda/detail/volume.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int side = 8;  // rows and columns of the tile of y
constexpr int max_threads = 1024;

__global__ void __launch_bounds__(max_threads)
    stencil_tile_input_3d(const __grid_constant__ Volume p, int planes) {
  float* const tile = &shared<float>();
  const int height = static_cast<int>(blockDim.y);
  const int width = static_cast<int>(blockDim.x);
  const int inward = static_cast<int>(threadIdx.z);
  const int down = static_cast<int>(threadIdx.y);
  const int across = static_cast<int>(threadIdx.x);
  // The thread's element of y, if it has one; the element of x that it loads is the first tap.
  const int plane = static_cast<int>(blockIdx.z) * planes + inward;
  const int row = static_cast<int>(blockIdx.y) * side + down;
  const int column = static_cast<int>(blockIdx.x) * side + across;
  const int from_plane = plane - p.origin[0];
  const int from_row = row - p.origin[1];
  const int from_column = column - p.origin[2];
  if (!p.is_ghost(from_plane, from_row, from_column)) {
    tile[(inward * height + down) * width + across] = p.element(from_plane, from_row, from_column);
  }
  __syncthreads();
  if (inward >= planes || down >= side || across >= side || !p.has(plane, row, column)) return;
  float sum = 0;
  for (int k = 0; k < p.taps[0]; ++k) {
    for (int i = 0; i < p.taps[1]; ++i) {
      for (int j = 0; j < p.taps[2]; ++j) {
        if (p.is_ghost(from_plane + k, from_row + i, from_column + j)) continue;
        sum += p.weight(k, i, j) * tile[((inward + k) * height + down + i) * width + across + j];
      }
    }
  }
  p.result(plane, row, column) = p.scale * sum;
}

/// Returns the planes of y per block, the most that keep the block within 1024 threads; 0: not even
/// one plane fits.
int planes_of(const Stencil::Args& args) {
  const int plane = (side - 1 + args.rows().taps) * (side - 1 + args.columns().taps);
  int planes = side;
  while (planes > 0 && (planes - 1 + args.depth().taps) * plane > max_threads) planes /= 2;
  return planes;
}

Support supports(const Stencil::Args& args, const Context& context) {
  if (const Support volume = supports_volume(args, context); !volume) return volume;
  constexpr int max_blocks = 65535, max_depth = 64;  // limits of a grid and of a block along z
  const int planes = planes_of(args);
  if (planes == 0 || args.depth().taps + planes - 1 > max_depth) {
    return unsupported("the input tile would have more than 1024 elements, one thread each");
  }
  return ceil_div(args.depth().extent, planes) <= max_blocks
             ? supported
             : unsupported("more planes than a grid has blocks for");
}

void run(const Stencil::Args& args, Context& context) {
  load_constant_mask(args, context);
  const int planes = planes_of(args);
  for_each_volume(args, context, [&](const Volume& p) {
    const int depth = planes + p.taps[0] - 1;
    const int height = side + p.taps[1] - 1;
    const int width = side + p.taps[2] - 1;
    launch(context,
           {.grid = {ceil_div(p.extent[2], side), ceil_div(p.extent[1], side),
                     ceil_div(p.extent[0], planes)},
            .block = {width, height, depth},
            .shared_bytes = static_cast<std::size_t>(depth * height * width) * sizeof(float)},
           stencil_tile_input_3d, p, planes);
  });
}

const Rung<Stencil> self{{.name = "tile_input_3d",
                          .step = 64,
                          .after = "tile_output_3d",
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
