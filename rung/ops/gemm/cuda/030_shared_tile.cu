// SPDX-License-Identifier: Apache-2.0
// gemm / shared tile
//
// Idea     a block copies a 32 x 32 tile of A and of B into shared memory, from which each thread
//          reads its row and column.
// Changes  against naive_coalesced: an element of A or B is loaded from global memory once per
//          block instead of once per thread, 32 times less often. Copies are zero-padded at edges.
// Cost     k / 16 global loads per element of C, 2 k shared loads, two barriers per 32 steps of k.
// Limits   f32. Shared memory: each multiply-add waits for two loads of 4 bytes. Column-major
//          matrices are read uncoalesced.
// Source   CUDA C++ Programming Guide, "Shared memory"; Kirk & Hwu, chapter on tiling.
#include <cmath>

#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int tile = 32;

struct Tiles {
  float a[tile][tile];
  float b[tile][tile];
};
constexpr Tiling tiling{
    .rows = tile, .columns = tile, .block = {tile, tile}, .shared_bytes = sizeof(Tiles)};

__global__ void __launch_bounds__(tile* tile) gemm_shared_tile(Product32 p) {
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
    tiles.b[ty][tx] = k + ty < p.k() && column < p.n() ? b(k + ty, column) : 0.0F;
    __syncthreads();  // the tiles are complete
    // The whole warp reads one element of A and 32 neighbors of B: no bank conflicts.
    for (int step = 0; step < tile; ++step) sum += tiles.a[ty][step] * tiles.b[step][tx];
    __syncthreads();  // before the next tile overwrites them
  }
  if (row < p.m() && column < p.n()) finish(p, batch, row, column, sum);
}

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_shared_tile, product<float, float>(args));
}

Work work(const Gemm::Args& args, const Context& context) {
  return tile_work(args, context, {.rows = tile, .columns = tile, .depth = tile, .resident = 2});
}

const Rung<Gemm> self{{.name = "shared_tile",
                       .step = 30,
                       .after = "naive_coalesced",
                       .backend = device_backend,
                       .supports = require_f32,
                       .tile = {.rows = tile, .columns = tile},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
