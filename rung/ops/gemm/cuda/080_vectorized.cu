// SPDX-License-Identifier: Apache-2.0
// gemm / vectorized
//
// Idea     register_tile_2d with float4 loads from global memory too. A's tile is transposed while
//          it is stored, so that a thread's rows are adjacent in shared memory, as its columns are.
// Changes  against register_tile_2d: a quarter of the global loads, bounds checks, addresses, and
//          stores of B's tile and of C.
// Cost     the same global-memory traffic.
// Limits   rows of A and B must start at multiples of 16 bytes. Each step of k waits for its
//          fragments: the loop over k is deliberately not unrolled; the next rung shows the gain.
// Source   Luitjens, "CUDA Pro Tip: Increase performance with vectorized memory access", 2013.
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int steps = 8;
constexpr int tile = GroupedTile::extent;
constexpr int threads = GroupedTile::threads;
constexpr int blocks = 2;  // per SM: at most 128 registers per thread

struct Tiles {
  alignas(16) float a[steps][tile + 4];  // [step][row]; padded for the transposed stores
  alignas(16) float b[steps][tile];
};
constexpr Tiling tiling{
    .rows = tile, .columns = tile, .block = threads, .shared_bytes = sizeof(Tiles)};

__global__ void __launch_bounds__(threads, blocks) gemm_vectorized(Product32 p) {
  Tiles& tiles = shared<Tiles>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tile;
  const int first_column = static_cast<int>(blockIdx.x) * tile;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  float sums[GroupedTile::fragment][GroupedTile::fragment] = {};
  for (std::int64_t k = 0; k < p.k(); k += steps) {
    VectorTile<tile, steps, threads> next_a;
    VectorTile<steps, tile, threads> next_b;
    next_a.load<true>(a, first_row, k);
    next_b.load<true>(b, k, first_column);
    next_a.put([&](int row, int step, const Pack<float, 4>& values) {
      for (int i = 0; i < 4; ++i) tiles.a[step + i][row] = values[i];
    });
    next_b.put([&](int step, int column, const Pack<float, 4>& values) {
      store_wide(&tiles.b[step][column], values);
    });
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      float a_values[GroupedTile::fragment];
      float b_values[GroupedTile::fragment];
      load_fragment<GroupedTile::fragment, GroupedTile::apart>(a_values,
                                                               &tiles.a[step][GroupedTile::row(0)]);
      load_fragment<GroupedTile::fragment, GroupedTile::apart>(
          b_values, &tiles.b[step][GroupedTile::column(0)]);
      multiply_add(sums, a_values, b_values);
    }
    __syncthreads();
  }
  finish_tile<GroupedTile::group>(
      p, batch, sums, [&](int i) { return first_row + GroupedTile::row(i); },
      [&](int j) { return first_column + GroupedTile::column(j); });
}

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_vectorized, product<float, float>(args));
}

Work work(const Gemm::Args& args, const Context& context) {
  return tile_work(args, context,
                   {.rows = tile, .columns = tile, .depth = steps, .resident = blocks});
}

const Rung<Gemm> self{{.name = "vectorized",
                       .step = 80,
                       .after = "register_tile_2d",
                       .backend = device_backend,
                       .supports = require_aligned_rows,
                       .tile = {.rows = tile, .columns = tile},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
