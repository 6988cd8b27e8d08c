// SPDX-License-Identifier: Apache-2.0
// gemm / uncoalesced tile
//
// Idea     a block copies a 32 x 32 tile of A and of B into shared memory, from which each thread
//          reads its row and column.
// Changes  against naive_coalesced: an element of A or B is loaded from global memory once per
//          block instead of once per thread. But the lanes of a warp walk down a column of B: a
//          load of B touches 32 sectors of 32 bytes for 4 useful bytes each.
// Cost     k / 16 global loads per element of C: 32 sectors per request for B and 4 for A, 18 in
//          the mean. A row of B's tile has one word of padding, so that storing a column is free of
//          bank conflicts; the multiplication reads rows and is free of them too.
// Limits   f32. L1 may serve the other 28 bytes of each sector to the warps that load the next
//          columns; on a miss, L2 transfers 8 times the bytes that the tile needs. shared_tile
//          exchanges the two axes of this load.
// Source   CUDA C++ Best Practices Guide, "Shared memory in matrix multiplication (C = A A')".
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int tile = 32;

struct Tiles {
  float a[tile][tile];
  float b[tile][tile + 1];
};
constexpr Tiling tiling{
    .rows = tile, .columns = tile, .block = {tile, tile}, .shared_bytes = sizeof(Tiles)};

__global__ void __launch_bounds__(tile* tile) gemm_uncoalesced_tile(Product32 p) {
  Tiles& tiles = shared<Tiles>();
  const int batch = static_cast<int>(blockIdx.z);
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  const std::int64_t row = std::int64_t{blockIdx.y} * tile + ty;
  const std::int64_t column = std::int64_t{blockIdx.x} * tile + tx;
  const std::int64_t loaded_column = std::int64_t{blockIdx.x} * tile + ty;  // the same for a warp
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  float sum = 0;
  for (std::int64_t k = 0; k < p.k(); k += tile) {
    tiles.a[ty][tx] = row < p.m() && k + tx < p.k() ? a(row, k + tx) : 0.0F;
    tiles.b[tx][ty] = k + tx < p.k() && loaded_column < p.n() ? b(k + tx, loaded_column) : 0.0F;
    __syncthreads();  // the tiles are complete
    for (int step = 0; step < tile; ++step) sum += tiles.a[ty][step] * tiles.b[step][tx];
    __syncthreads();  // before the next tile overwrites them
  }
  if (row < p.m() && column < p.n()) finish(p, batch, row, column, sum);
}

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_uncoalesced_tile, product<float, float>(args));
}

const Rung<Gemm> self{{.name = "uncoalesced_tile",
                       .step = 28,
                       .after = "naive_coalesced",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_f32,
                       .tile = {.rows = tile, .columns = tile},
                       .run = run}};

}  // namespace
}  // namespace rung
