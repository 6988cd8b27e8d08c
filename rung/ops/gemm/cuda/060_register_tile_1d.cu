// SPDX-License-Identifier: Apache-2.0
// gemm / register tile, one-dimensional
//
// Idea     joint register and shared-memory tiling: the block's tiles of A and B are in shared
//          memory, a thread's 16 rows of one column of C in registers.
// Changes  against outer_product: B passes through shared memory too, so a block can have more
//          rows: 128 x 64 instead of 16 x 128. B is read an eighth as often.
// Cost     5 shared loads (one of 4 bytes, four of 16) for 16 multiply-adds.
// Limits   shared-memory bandwidth: reuse in one direction only.
// Source   Kirk & Hwu, "Programming Massively Parallel Processors", joint register and shared-
//          memory tiling.
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

struct Tuning {
  int rows, columns, steps;
  int thread_rows;
  int blocks;  // per SM; without this bound ptxas uses 97 registers per thread
  [[nodiscard]] constexpr int threads() const { return rows * columns / thread_rows; }
};
constexpr Tuning tuning{.rows = 128, .columns = 64, .steps = 16, .thread_rows = 16, .blocks = 3};

struct Tiles {
  alignas(16) float a[tuning.steps][tuning.rows + 4];  // [step][row]; padded: see outer_product
  float b[tuning.steps][tuning.columns];
};
constexpr Tiling tiling{.rows = tuning.rows,
                        .columns = tuning.columns,
                        .block = tuning.threads(),
                        .shared_bytes = sizeof(Tiles)};

__global__ void __launch_bounds__(tuning.threads(), tuning.blocks)
    gemm_register_tile_1d(Product32 p) {
  Tiles& tiles = shared<Tiles>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tuning.rows;
  const int first_column = static_cast<int>(blockIdx.x) * tuning.columns;
  // A warp covers 32 columns of the same rows: its reads of A are broadcasts.
  const int column = thread_index() % tuning.columns;
  const int row = thread_index() / tuning.columns * tuning.thread_rows;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  float sums[tuning.thread_rows][1] = {};
  for (std::int64_t k = 0; k < p.k(); k += tuning.steps) {
    load_tile<tuning.rows, tuning.steps, tuning.threads()>(
        a, first_row, k, [&](int r, int step, float value) { tiles.a[step][r] = value; });
    load_tile<tuning.steps, tuning.columns, tuning.threads()>(
        b, k, first_column, [&](int step, int c, float value) { tiles.b[step][c] = value; });
    __syncthreads();
#pragma unroll
    for (int step = 0; step < tuning.steps; ++step) {
      const auto rows = load_wide<tuning.thread_rows>(&tiles.a[step][row]);
      multiply_add(sums, rows.at, {tiles.b[step][column]});
    }
    __syncthreads();
  }
  finish_tile<1>(
      p, batch, sums, [&](int i) { return first_row + row + i; },
      [&](int) { return first_column + column; });
}

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_register_tile_1d, product<float, float>(args));
}

Work work(const Gemm::Args& args, const Context& context) {
  return tile_work(args, context,
                   {.rows = tuning.rows,
                    .columns = tuning.columns,
                    .depth = tuning.steps,
                    .resident = tuning.blocks});
}

const Rung<Gemm> self{{.name = "register_tile_1d",
                       .step = 60,
                       .after = "outer_product",
                       .backend = device_backend,
                       .supports = require_f32,
                       .tile = {.rows = tuning.rows, .columns = tuning.columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
