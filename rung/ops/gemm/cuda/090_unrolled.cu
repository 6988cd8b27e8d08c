// SPDX-License-Identifier: Apache-2.0
// gemm / unrolled
//
// Idea     the loop over a tile's steps is unrolled, and interior tiles are copied without bounds
//          checks.
// Changes  against vectorized: no loop counter between steps, and the compiler schedules the loads
//          of a step's fragments among the multiply-adds of the preceding step. Only edge tiles
//          check bounds.
// Cost     the same global-memory traffic; code eight times as long.
// Limits   a block idles while its next tiles are loaded: only other blocks on the SM hide the
//          latency.
// Source   Volkov, "Better performance at lower occupancy", GTC 2010.
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

__global__ void __launch_bounds__(threads, blocks) gemm_unrolled(Product32 p) {
  Tiles& tiles = shared<Tiles>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tile;
  const int first_column = static_cast<int>(blockIdx.x) * tile;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  float sums[GroupedTile::fragment][GroupedTile::fragment] = {};
  const bool inside = first_row + tile <= p.m() && first_column + tile <= p.n();
  for (std::int64_t k = 0; k < p.k(); k += steps) {
    VectorTile<tile, steps, threads> next_a;
    VectorTile<steps, tile, threads> next_b;
    if (inside && k + steps <= p.k()) {
      next_a.load<false>(a, first_row, k);
      next_b.load<false>(b, k, first_column);
    } else {
      next_a.load<true>(a, first_row, k);
      next_b.load<true>(b, k, first_column);
    }
    next_a.put([&](int row, int step, const Pack<float, 4>& values) {
      for (int i = 0; i < 4; ++i) tiles.a[step + i][row] = values[i];
    });
    next_b.put([&](int step, int column, const Pack<float, 4>& values) {
      store_wide(&tiles.b[step][column], values);
    });
    __syncthreads();
#pragma unroll
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
  launch_tiles(context, tiling, gemm_unrolled, product<float, float>(args));
}

Work work(const Gemm::Args& args, const Context& context) {
  return tile_work(args, context,
                   {.rows = tile, .columns = tile, .depth = steps, .resident = blocks});
}

const Rung<Gemm> self{{.name = "unrolled",
                       .step = 90,
                       .after = "vectorized",
                       .backend = device_backend,
                       .supports = require_aligned_rows,
                       .tile = {.rows = tile, .columns = tile},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
