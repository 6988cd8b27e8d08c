// SPDX-License-Identifier: Apache-2.0
// gemm / prefetch
//
// Idea     double buffering in shared memory: while a block multiplies the tiles in one buffer, the
//          next tiles are in flight from global memory, through registers, to the other.
// Changes  against unrolled: the multiply-adds of a tile hide the memory latency, and one barrier
//          per tile suffices, since no thread writes the buffer that is being read.
// Cost     the same global-memory traffic; twice the shared memory, 8 registers per thread for data
//          in flight.
// Limits   only one tile is in flight, during the 512 multiply-adds of a tile: less than the
//          latency of loaded memory.
// Source   Tan et al., "Fast implementation of DGEMM on Fermi GPU", SC 2011.
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
struct Buffers {
  Tiles tiles[2];
};
constexpr Tiling tiling{
    .rows = tile, .columns = tile, .block = threads, .shared_bytes = sizeof(Buffers)};

__global__ void __launch_bounds__(threads, blocks) gemm_prefetch(Product32 p) {
  Buffers& buffers = shared<Buffers>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tile;
  const int first_column = static_cast<int>(blockIdx.x) * tile;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  float sums[GroupedTile::fragment][GroupedTile::fragment] = {};
  const bool inside = first_row + tile <= p.m() && first_column + tile <= p.n();

  VectorTile<tile, steps, threads> next_a;
  VectorTile<steps, tile, threads> next_b;
  // Loads the next tiles into registers: the loads are issued here and waited for in deposit().
  const auto fetch = [&](std::int64_t k) {
    if (inside && k + steps <= p.k()) {
      next_a.load<false>(a, first_row, k);
      next_b.load<false>(b, k, first_column);
    } else {
      next_a.load<true>(a, first_row, k);
      next_b.load<true>(b, k, first_column);
    }
  };
  const auto deposit = [&](Tiles& tiles) {
    next_a.put([&](int row, int step, const Pack<float, 4>& values) {
      for (int i = 0; i < 4; ++i) tiles.a[step + i][row] = values[i];
    });
    next_b.put([&](int step, int column, const Pack<float, 4>& values) {
      store_wide(&tiles.b[step][column], values);
    });
  };

  if (p.k() > 0) {
    fetch(0);
    deposit(buffers.tiles[0]);
    __syncthreads();
  }
  int current = 0;
  for (std::int64_t k = 0; k < p.k(); k += steps) {
    const bool more = k + steps < p.k();
    if (more) fetch(k + steps);
    const Tiles& tiles = buffers.tiles[current];
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
    current ^= 1;
    if (more) deposit(buffers.tiles[current]);  // all threads read it before the last barrier
    __syncthreads();
  }
  finish_tile<GroupedTile::group>(
      p, batch, sums, [&](int i) { return first_row + GroupedTile::row(i); },
      [&](int j) { return first_column + GroupedTile::column(j); });
}

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_prefetch, product<float, float>(args));
}

Work work(const Gemm::Args& args, const Context& context) {
  return tile_work(args, context,
                   {.rows = tile, .columns = tile, .depth = steps, .resident = blocks});
}

const Rung<Gemm> self{{.name = "prefetch",
                       .step = 100,
                       .after = "unrolled",
                       .backend = device_backend,
                       .supports = require_aligned_rows,
                       .tile = {.rows = tile, .columns = tile},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
