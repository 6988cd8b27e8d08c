// SPDX-License-Identifier: Apache-2.0
// gemm / outer product
//
// Idea     a thread keeps a strip of C, 16 rows of one column, in registers. Each step of k adds an
//          outer product: a column of A's tile, from shared memory, times a row of B, of which
//          every thread holds one element in a register.
// Changes  against shared_tile: 16 multiply-adds need one load of B and 16 elements of A (4 loads
//          of 16 bytes, broadcast to the warp) instead of two loads each. B bypasses shared memory,
//          because each element is needed by only one thread of the block.
// Cost     B is read once per 16 rows of C, from L2; A once per 128 columns.
// Limits   L2 bandwidth: 16 rows per block re-read B too often.
// Source   Volkov & Demmel, "Benchmarking GPUs to tune dense linear algebra", SC 2008.
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

struct Tuning {
  int rows, columns, steps;
  int blocks;  // per SM; without this bound ptxas uses 128 registers per thread
};
constexpr Tuning tuning{.rows = 16, .columns = 128, .steps = 16, .blocks = 8};

struct Tiles {
  // [step][row]: a thread's rows are adjacent. Padded against bank conflicts when A is contiguous
  // along k; the pitch stays a multiple of 16 bytes.
  alignas(16) float a[tuning.steps][tuning.rows + 4];
};
constexpr Tiling tiling{.rows = tuning.rows,
                        .columns = tuning.columns,
                        .block = tuning.columns,
                        .shared_bytes = sizeof(Tiles)};

__global__ void __launch_bounds__(tuning.columns, tuning.blocks) gemm_outer_product(Product32 p) {
  Tiles& tiles = shared<Tiles>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tuning.rows;
  const int column = static_cast<int>(blockIdx.x) * tuning.columns + thread_index();
  const bool inside = column < p.n();
  const auto a = p.a.at(batch);
  // Not a view of one matrix: in unoptimized builds (RUNG_CUDA_UNOPTIMIZED), nvcc 13.0 lets
  // load_wide's temporaries overwrite it.
  const float* const b = &p.b(batch, 0, column);
  float sums[tuning.rows][1] = {};
  for (std::int64_t k = 0; k < p.k(); k += tuning.steps) {
    load_tile<tuning.rows, tuning.steps, tuning.columns>(
        a, first_row, k, [&](int row, int step, float value) { tiles.a[step][row] = value; });
    __syncthreads();
    float values[tuning.steps];  // all loads are in flight before the first use
#pragma unroll
    for (int step = 0; step < tuning.steps; ++step) {
      values[step] = inside && k + step < p.k() ? b[(k + step) * p.b.strides[1]] : 0.0f;
    }
#pragma unroll
    for (int step = 0; step < tuning.steps; ++step) {
      const Pack<float, tuning.rows> rows = load_wide<tuning.rows>(tiles.a[step]);
      multiply_add(sums, rows.at, {values[step]});
    }
    __syncthreads();
  }
  finish_tile<1>(
      p, batch, sums, [&](int i) { return first_row + i; }, [&](int) { return column; });
}

void run(const Gemm::Args& args, Context& context) {
  launch_tiles(context, tiling, gemm_outer_product, product<float, float>(args));
}

Work work(const Gemm::Args& args, const Context& context) {
  return tile_work(args, context,
                   {.rows = tuning.rows,
                    .columns = tuning.columns,
                    .depth = tuning.steps,
                    .resident = tuning.blocks});
}

const Rung<Gemm> self{{.name = "outer_product",
                       .step = 50,
                       .after = "shared_tile",
                       .backend = device_backend,
                       .supports = require_f32,
                       .tile = {.rows = tuning.rows, .columns = tuning.columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
