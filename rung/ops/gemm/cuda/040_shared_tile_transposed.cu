// SPDX-License-Identifier: Apache-2.0
// gemm / shared tile, transposed
//
// Idea     shared_tile with B's tile stored transposed, as one would lay it out for a CPU, where a
//          dot product wants both operands contiguous along k.
// Changes  against shared_tile: slower, on purpose. The 32 lanes of a warp now read b[lane][step],
//          32 words apart: all in one of the 32 banks, so that a read takes 32 turns instead of 1.
// Cost     the same bytes; 32 times the shared-memory wavefronts for B.
// Limits   bank conflicts. One column of padding, b[tile][tile + 1], would spread the lanes over
//          all banks again.
// Source   CUDA C++ Best Practices Guide, "Shared memory in matrix multiplication (C = A A')".
#include "rung/ops/gemm/cuda/detail/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int tile = 32;

struct Tiles {
  float a[tile][tile];
  float b[tile][tile];  // [column][step]
};
constexpr Tiling tiling{
    .rows = tile, .columns = tile, .block = {tile, tile}, .shared_bytes = sizeof(Tiles)};

__global__ void __launch_bounds__(tile* tile) gemm_shared_tile_transposed(Product32 p) {
  Tiles& tiles = shared<Tiles>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tile;
  const int first_column = static_cast<int>(blockIdx.x) * tile;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  float sum = 0;
  for (std::int64_t k = 0; k < p.k(); k += tile) {
    load_tile<tile, tile, tile * tile>(
        a, first_row, k, [&](int row, int step, float value) { tiles.a[row][step] = value; });
    load_tile<tile, tile, tile * tile>(
        b, k, first_column, [&](int step, int column, float v) { tiles.b[column][step] = v; });
    __syncthreads();
    for (int step = 0; step < tile; ++step) {
      sum += tiles.a[threadIdx.y][step] * tiles.b[threadIdx.x][step];  // a 32-way conflict
    }
    __syncthreads();
  }
  const std::int64_t row = first_row + static_cast<int>(threadIdx.y);
  const std::int64_t column = first_column + static_cast<int>(threadIdx.x);
  if (row < p.m() && column < p.n()) finish(p, batch, row, column, sum);
}

Cost traffic(const Gemm::Args& args) { return tiled_traffic(args, tile, tile); }

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_shared_tile_transposed, product<float, float>(args));
}

const Rung<Gemm> self{{.name = "shared_tile_transposed",
                       .step = 40,
                       .after = "shared_tile",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_f32,
                       .traffic = traffic,
                       .run = run}};

}  // namespace
}  // namespace rung
