// SPDX-License-Identifier: Apache-2.0
// gemm / register tile, two-dimensional
//
// Idea     a thread computes 8 x 8 elements of C: 8 values of A and 8 of B in registers feed 64
//          multiply-adds. All threads of the block copy the tiles together, regardless of which
//          part each uses.
// Changes  against register_tile_1d: reuse in both directions. 64 multiply-adds need 4 shared loads
//          of 16 bytes; before, 16 multiply-adds needed 5 loads.
// Cost     128 x 128 tiles: each element of A and B is read once per 128 columns or rows of C.
// Limits   global loads of single elements, each with its bounds check and address: 4096 cubed
//          takes 8.57 ms on an H200; register_tile_1d takes 7.64, and vectorized, which widens
//          these loads, 4.37. The loop over steps is deliberately not unrolled: the rung `unrolled`
//          shows the gain.
// Source   Volkov & Demmel, SC 2008; Nath, Tomov & Dongarra, "An improved MAGMA GEMM for Fermi",
//          2010.
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int steps = 8;
constexpr int tile = GroupedTile::extent;  // rows, and columns, of C
constexpr int threads = GroupedTile::threads;
constexpr int fragment = GroupedTile::fragment;
constexpr int blocks = 2;  // per SM: at most 128 registers per thread

struct Tiles {
  // [step][row], like B's; padded, so that storing eight steps of a row of A hits eight banks.
  alignas(16) float a[steps][tile + 4];
  alignas(16) float b[steps][tile];
};
constexpr Tiling tiling{
    .rows = tile, .columns = tile, .block = threads, .shared_bytes = sizeof(Tiles)};

__global__ void __launch_bounds__(threads, blocks) gemm_register_tile_2d(Product32 p) {
  Tiles& tiles = shared<Tiles>();
  const int thread = thread_index();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tile;
  const int first_column = static_cast<int>(blockIdx.x) * tile;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  float sums[fragment][fragment] = {};
  for (std::int64_t k = 0; k < p.k(); k += steps) {
    // Eight threads copy eight steps of a row of A, 128 threads a row of B.
    const int a_step = thread % steps;
#pragma unroll
    for (int i = 0; i < tile * steps / threads; ++i) {
      const int row = thread / steps + i * (threads / steps);
      const bool inside = first_row + row < p.m() && k + a_step < p.k();
      tiles.a[a_step][row] = inside ? a(first_row + row, k + a_step) : 0.0f;
    }
    const int column = thread % tile;
#pragma unroll
    for (int i = 0; i < steps * tile / threads; ++i) {
      const int step = thread / tile + i * (threads / tile);
      const bool inside = k + step < p.k() && first_column + column < p.n();
      tiles.b[step][column] = inside ? b(k + step, first_column + column) : 0.0f;
    }
    __syncthreads();
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      float a_values[fragment];
      float b_values[fragment];
      load_fragment<fragment, GroupedTile::apart>(a_values, &tiles.a[step][GroupedTile::row(0)]);
      load_fragment<fragment, GroupedTile::apart>(b_values, &tiles.b[step][GroupedTile::column(0)]);
#pragma unroll
      for (int i = 0; i < fragment; ++i) {
#pragma unroll
        for (int j = 0; j < fragment; ++j) sums[i][j] += a_values[i] * b_values[j];
      }
    }
    __syncthreads();
  }
  finish_tile<GroupedTile::group>(
      p, batch, sums, [&](int i) { return first_row + GroupedTile::row(i); },
      [&](int j) { return first_column + GroupedTile::column(j); });
}

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_register_tile_2d, product<float, float>(args));
}

Work work(const Gemm::Args& args, const Context& context) {
  return tile_work(args, context,
                   {.rows = tile, .columns = tile, .depth = steps, .resident = blocks});
}

const Rung<Gemm> self{{.name = "register_tile_2d",
                       .step = 70,
                       .after = "register_tile_1d",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_f32,
                       .tile = {.rows = tile, .columns = tile},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
