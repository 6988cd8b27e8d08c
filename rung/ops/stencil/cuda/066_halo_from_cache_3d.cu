// SPDX-License-Identifier: Apache-2.0
// stencil / the halo from the cache, 3-D
//
// Idea     Shared memory holds only the inner tile, one element per thread. Taps in the halo are
//          loaded from global memory: the halo belongs to the inner tiles of neighboring blocks,
//          usually in L2 or L1 already.
// Changes  Against tile_input_3d: every thread loads and every thread computes; each tap tests
//          whether its element is inside the tile.
// Cost     A tile of 8 x 8 x 8 under 3 x 3 x 3: of 13,824 taps, 10,648 = 22^3 are loaded from
//          shared memory and 3,176 from global memory.
// Limits   f32; three axes, a contiguous mask. Most warps have lanes at the border of the tile and
//          diverge.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, section 7.5.
#include "rung/ops/stencil/cuda/detail/volume.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int side = 8;

struct TileBuffer {
  float at[side][side][side];
};

__global__ void stencil_halo_from_cache_3d(const __grid_constant__ Volume p) {
  TileBuffer& tile = shared<TileBuffer>();
  const int inward = static_cast<int>(threadIdx.z);
  const int down = static_cast<int>(threadIdx.y);
  const int across = static_cast<int>(threadIdx.x);
  const int plane = static_cast<int>(blockIdx.z) * side + inward;
  const int row = static_cast<int>(blockIdx.y) * side + down;
  const int column = static_cast<int>(blockIdx.x) * side + across;
  if (p.has(plane, row, column)) tile.at[inward][down][across] = p.element(plane, row, column);
  __syncthreads();
  if (!p.has(plane, row, column)) return;
  float sum = 0;
  for (int k = -p.origin[0]; k < p.taps[0] - p.origin[0]; ++k) {
    for (int i = -p.origin[1]; i < p.taps[1] - p.origin[1]; ++i) {
      for (int j = -p.origin[2]; j < p.taps[2] - p.origin[2]; ++j) {
        if (p.is_ghost(plane + k, row + i, column + j)) continue;
        const float weight = p.weight(k + p.origin[0], i + p.origin[1], j + p.origin[2]);
        const int in_tile[] = {inward + k, down + i, across + j};
        bool is_inside = p.has(plane + k, row + i, column + j);
        for (const int at : in_tile) is_inside = is_inside && at >= 0 && at < side;
        sum += weight * (is_inside ? tile.at[in_tile[0]][in_tile[1]][in_tile[2]]
                                   : p.element(plane + k, row + i, column + j));
      }
    }
  }
  p.result(plane, row, column) = p.scale * sum;
}

void run(const Stencil::Args& args, Context& context) {
  load_constant_mask(args, context);
  for_each_volume(args, context, [&](const Volume& p) {
    launch(context,
           {.grid = {ceil_div(p.extent[2], side), ceil_div(p.extent[1], side),
                     ceil_div(p.extent[0], side)},
            .block = {side, side, side},
            .shared_bytes = sizeof(TileBuffer)},
           stencil_halo_from_cache_3d, p);
  });
}

const Rung<Stencil> self{{.name = "halo_from_cache_3d",
                          .step = 66,
                          .after = "tile_input_3d",
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports_volume,
                          .run = run}};

}  // namespace
}  // namespace rung
