// SPDX-License-Identifier: Apache-2.0
// stencil / the block covers the output tile and loads the halo, 3-D
//
// Idea     One thread per element of a tile of y. The input tile exceeds it by the halo, a shell;
//          the block loads it into shared memory in a strided loop. Then each thread reads its
//          window from shared memory.
// Changes  Against tile_output_load_halo: three axes. The halo grows from a frame to a shell.
// Cost     A tile of 8 x 8 x 8 under 3 x 3 x 3: 1000 loads for 512 x 27 uses, 13.82 uses per load
//          (27 at best); a tile of 32 x 32 under 3 x 3 has 7.97 (9 at best).
// Limits   f32; three axes, a contiguous mask whose tile fits shared memory. One load from shared
//          memory per multiply-add.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, chapter 8.
#include "rung/ops/stencil/cuda/detail/volume.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int side = 8;  // side of the tile of y and of the block

__global__ void stencil_tile_output_3d(const __grid_constant__ Volume p) {
  float* const tile = &shared<float>();  // all elements of x under the windows of the block
  const int depth = side + p.taps[0] - 1;
  const int height = side + p.taps[1] - 1;
  const int width = side + p.taps[2] - 1;
  const int inward = static_cast<int>(threadIdx.z);
  const int down = static_cast<int>(threadIdx.y);
  const int across = static_cast<int>(threadIdx.x);
  const int plane = static_cast<int>(blockIdx.z) * side + inward;
  const int row = static_cast<int>(blockIdx.y) * side + down;
  const int column = static_cast<int>(blockIdx.x) * side + across;
  for (int k = inward; k < depth; k += side) {
    for (int i = down; i < height; i += side) {
      for (int j = across; j < width; j += side) {
        const int from_plane = plane - inward + k - p.origin[0];
        const int from_row = row - down + i - p.origin[1];
        const int from_column = column - across + j - p.origin[2];
        if (p.is_ghost(from_plane, from_row, from_column)) continue;
        tile[(k * height + i) * width + j] = p.element(from_plane, from_row, from_column);
      }
    }
  }
  __syncthreads();
  if (!p.has(plane, row, column)) return;
  float sum = 0;
  for (int k = 0; k < p.taps[0]; ++k) {
    for (int i = 0; i < p.taps[1]; ++i) {
      for (int j = 0; j < p.taps[2]; ++j) {
        if (p.is_ghost(plane + k - p.origin[0], row + i - p.origin[1], column + j - p.origin[2])) {
          continue;
        }
        sum += p.weight(k, i, j) * tile[((inward + k) * height + down + i) * width + across + j];
      }
    }
  }
  p.result(plane, row, column) = p.scale * sum;
}

std::size_t shared_bytes(const Stencil::Args& args) {
  std::size_t elements = 1;
  for (const Stencil::Axis& axis : args.axis) {
    elements *= static_cast<std::size_t>(side + axis.taps - 1);
  }
  return elements * sizeof(float);
}

Support supports(const Stencil::Args& args, const Context& context) {
  if (const Support volume = supports_volume(args, context); !volume) return volume;
  return shared_bytes(args) <= context.info().shared_per_block
             ? supported
             : unsupported("the tile of x does not fit shared memory");
}

void run(const Stencil::Args& args, Context& context) {
  load_constant_mask(args, context);
  for_each_volume(args, context, [&](const Volume& p) {
    launch(context,
           {.grid = {ceil_div(p.extent[2], side), ceil_div(p.extent[1], side),
                     ceil_div(p.extent[0], side)},
            .block = {side, side, side},
            .shared_bytes = shared_bytes(args)},
           stencil_tile_output_3d, p);
  });
}

const Rung<Stencil> self{{.name = "tile_output_3d",
                          .step = 62,
                          .after = "tile_output_load_halo",
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
