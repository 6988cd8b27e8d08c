// SPDX-License-Identifier: Apache-2.0
// gemm / register tile, global
//
// Idea     each thread computes 4 x 4 elements of C in registers, loading operands directly from
//          global memory: one step of k loads 4 elements of A and 4 of B for 16 multiply-adds.
// Changes  against naive_coalesced: 2 / 4 loads per multiply-add instead of 2. In general, tiles of
//          V x V load 2 m n k / V elements and need V^2 registers for sums.
// Cost     k / 2 loads per element of C; no shared memory, no barrier. The columns of a thread are
//          32 apart, so a warp still loads 32 adjacent elements of B.
// Limits   f32. Warps do not share loads: all eight warps of a block load the same elements of B,
//          seven of them from L1.
// Source   V. Volkov and J. Demmel, Benchmarking GPUs to tune dense linear algebra, 2008.
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int side = 4;  // rows and columns of a thread's tile
constexpr int lanes = 32, warps = 8;
constexpr Tiling tiling{.rows = warps * side, .columns = lanes * side, .block = {lanes, warps}};

__global__ void __launch_bounds__(lanes* warps) gemm_register_tile_global(Product32 p) {
  const int batch = static_cast<int>(blockIdx.z);
  const std::int64_t first_row = std::int64_t{blockIdx.y} * tiling.rows + threadIdx.y * side;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * tiling.columns + threadIdx.x;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  float sums[side][side] = {};
  for (std::int64_t k = 0; k < p.k(); ++k) {
    float left[side];
    float right[side];
#pragma unroll
    for (int i = 0; i < side; ++i) {
      const std::int64_t row = first_row + i;
      const std::int64_t column = first_column + i * lanes;
      left[i] = row < p.m() ? a(row, k) : 0.0F;
      right[i] = column < p.n() ? b(k, column) : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < side; ++i) {
#pragma unroll
      for (int j = 0; j < side; ++j) sums[i][j] += left[i] * right[j];
    }
  }
  for (int i = 0; i < side; ++i) {
    for (int j = 0; j < side; ++j) {
      const std::int64_t row = first_row + i;
      const std::int64_t column = first_column + j * lanes;
      if (row < p.m() && column < p.n()) finish(p, batch, row, column, sums[i][j]);
    }
  }
}

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_register_tile_global, product<float, float>(args));
}

const Rung<Gemm> self{{.name = "register_tile_global",
                       .step = 22,
                       .after = "naive_coalesced",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_f32,
                       .tile = {.rows = side, .columns = side},
                       .run = run}};

}  // namespace
}  // namespace rung
