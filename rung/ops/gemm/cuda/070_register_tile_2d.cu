// SPDX-License-Identifier: Apache-2.0
// gemm / register tile, two-dimensional
//
// Idea     a thread computes 8 x 8 elements of C: 8 values of A and 8 of B, once in registers, feed
//          64 multiply-adds. All threads of the block copy the tiles together, whatever part of
//          them each will use.
// Changes  against register_tile_1d: reuse in both directions. 16 loaded values feed 64
//          multiply-adds, where 17 fed 16.
// Cost     16 shared loads of 4 bytes per 64 multiply-adds; 128 x 128 tiles, so that each element
//          of A and B is read once for every 128 columns or rows of C.
// Limits   instructions: loads of single elements, each with its bounds check and address.
// Source   Volkov & Demmel, SC 2008; Nath, Tomov & Dongarra, "An improved MAGMA GEMM for Fermi",
//          2010.
#include "rung/ops/gemm/cuda/detail/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int tile_rows = 128, tile_columns = 128, steps = 8;
constexpr int threads_down = 16, threads_along = 16;
constexpr int threads = threads_down * threads_along;
constexpr int thread_rows = tile_rows / threads_down;
constexpr int thread_columns = tile_columns / threads_along;
constexpr int blocks = 2;  // on an SM: at most 128 registers per thread

struct Tiles {
  // [step][row], as B's; padded, so that eight steps of a row of A are stored to eight banks.
  float a[steps][tile_rows + 4];
  float b[steps][tile_columns];
};
constexpr Tiling tiling{.rows = tile_rows,
                        .columns = tile_columns,
                        .block = {threads_along, threads_down},
                        .shared_bytes = sizeof(Tiles)};

__global__ void __launch_bounds__(threads, blocks) gemm_register_tile_2d(Product32 p) {
  Tiles& tiles = shared<Tiles>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tile_rows;
  const int first_column = static_cast<int>(blockIdx.x) * tile_columns;
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int thread = y * threads_along + x;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  float sums[thread_rows][thread_columns] = {};
  for (std::int64_t k = 0; k < p.k(); k += steps) {
    // Eight threads copy eight steps of a row of A, 128 threads a row of B.
    const int a_step = thread % steps;
#pragma unroll
    for (int row = thread / steps; row < tile_rows; row += threads / steps) {
      const bool inside = first_row + row < p.m() && k + a_step < p.k();
      tiles.a[a_step][row] = inside ? a(first_row + row, k + a_step) : 0.0f;
    }
    const int column = thread % tile_columns;
#pragma unroll
    for (int step = thread / tile_columns; step < steps; step += threads / tile_columns) {
      const bool inside = k + step < p.k() && first_column + column < p.n();
      tiles.b[step][column] = inside ? b(k + step, first_column + column) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      // A thread's rows and columns are 16 apart: adjacent lanes read adjacent words.
      float a_values[thread_rows];
      float b_values[thread_columns];
#pragma unroll
      for (int i = 0; i < thread_rows; ++i) a_values[i] = tiles.a[step][y + i * threads_down];
#pragma unroll
      for (int j = 0; j < thread_columns; ++j) b_values[j] = tiles.b[step][x + j * threads_along];
#pragma unroll
      for (int i = 0; i < thread_rows; ++i) {
#pragma unroll
        for (int j = 0; j < thread_columns; ++j) sums[i][j] += a_values[i] * b_values[j];
      }
    }
    __syncthreads();
  }
  finish_tile<1>(
      p, batch, sums, [&](int i) { return first_row + y + i * threads_down; },
      [&](int j) { return first_column + x + j * threads_along; });
}

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_register_tile_2d, product<float, float>(args));
}

const Rung<Gemm> self{
    {.name = "register_tile_2d",
     .step = 70,
     .after = "register_tile_1d",
     .backend = device_backend,
     .teaching = true,
     .supports = require_f32,
     .speed = {.peak = 0.4, .rows = tile_rows, .columns = tile_columns, .blocks_per_sm = blocks},
     .run = run}};

}  // namespace
}  // namespace rung
