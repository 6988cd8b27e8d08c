// SPDX-License-Identifier: Apache-2.0
// gemm / shared tile, transposed
//
// Idea     shared_tile with B's tile stored transposed, as on a CPU, where a dot product wants both
//          operands contiguous along k.
// Changes  against shared_tile: slower, on purpose. The 32 lanes of a warp load b[lane][step], 32
//          words apart and therefore in the same bank: a 32-way bank conflict, 32 wavefronts
//          instead of 1. Storing a row of B has the same conflict.
// Cost     the same global-memory traffic; 32 wavefronts per load of B, 1 per load of A, 16.5 in
//          the mean. nvcc merges four steps' loads into one 16-byte load, which leaves a quarter of
//          the conflicts.
// Limits   f32; bank conflicts. One column of padding, b[tile][tile + 1], would spread the lanes
//          over all banks.
// Source   CUDA C++ Best Practices Guide, "Shared memory in matrix multiplication (C = A A')".
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

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
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  const std::int64_t row = std::int64_t{blockIdx.y} * tile + ty;
  const std::int64_t column = std::int64_t{blockIdx.x} * tile + tx;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  float sum = 0;
  for (std::int64_t k = 0; k < p.k(); k += tile) {
    tiles.a[ty][tx] = row < p.m() && k + tx < p.k() ? a(row, k + tx) : 0.0F;
    tiles.b[tx][ty] = k + ty < p.k() && column < p.n() ? b(k + ty, column) : 0.0F;
    __syncthreads();  // the tiles are complete
    for (int step = 0; step < tile; ++step) {
      sum += tiles.a[ty][step] * tiles.b[tx][step];  // a 32-way bank conflict
    }
    __syncthreads();  // before the next tile overwrites them
  }
  if (row < p.m() && column < p.n()) finish(p, batch, row, column, sum);
}

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_shared_tile_transposed, product<float, float>(args));
}

const Rung<Gemm> self{{.name = "shared_tile_transposed",
                       .step = 35,
                       .after = "shared_tile",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_f32,
                       .tile = {.rows = tile, .columns = tile},
                       .run = run}};

}  // namespace
}  // namespace rung
