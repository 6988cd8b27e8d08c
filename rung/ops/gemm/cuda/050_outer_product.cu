// SPDX-License-Identifier: Apache-2.0
// gemm / outer product
//
// Idea     a thread keeps a whole strip of C, 16 rows of one column, in registers. Each step of k
//          adds an outer product: a column of A's tile, from shared memory, times a row of B, of
//          which every thread holds its one element in a register.
// Changes  against shared_tile: one load of B and 16 of A (4 instructions of 16 bytes, the same
//          address for the whole warp) feed 16 multiply-adds; there it was two loads for one. B
//          never passes through shared memory: no thread but one column's needs it.
// Cost     B is read once for every 16 rows of C, from L2; A once for every 128 columns.
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
  int blocks;  // resident on an SM; without the limit ptxas takes 128 registers per thread
};
constexpr Tuning tuning{.rows = 16, .columns = 128, .steps = 16, .blocks = 8};

struct Tiles {
  // [step][row], so that a thread's rows are neighbors; padded against conflicts when A arrives
  // along k, and a multiple of 16 bytes.
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
  // No view of one matrix: unoptimized (RUNG_CUDA_UNOPTIMIZED), nvcc 13.0 would let load_wide's
  // temporaries overwrite it.
  const float* const b = &p.b(batch, 0, column);
  float sums[tuning.rows][1] = {};
  for (std::int64_t k = 0; k < p.k(); k += tuning.steps) {
    load_tile<tuning.rows, tuning.steps, tuning.columns>(
        a, first_row, k, [&](int row, int step, float value) { tiles.a[step][row] = value; });
    __syncthreads();
    float values[tuning.steps];  // all in flight at once, before the first is used
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
