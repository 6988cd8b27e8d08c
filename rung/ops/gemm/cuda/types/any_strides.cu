// SPDX-License-Identifier: Apache-2.0
// gemm / any strides
//
// Idea     register_tile_2d for every type and stride: threads copy along whichever axis of an
//          operand is contiguous, and 16-bit elements are multiplied as floats.
// Changes  against register_tile_2d: 64-bit addresses, a stride per axis, conversions.
// Cost     16 shared loads of 4 bytes per 64 multiply-adds; 128 x 128 tiles, so each element of A
//          and B is read once per 128 columns or rows of C.
// Limits   instruction issue: loads of single elements, each with its bounds check and address.
//          Used for calls that no faster rung supports.
// Source   Nath, Tomov & Dongarra, "An improved MAGMA GEMM for Fermi", 2010.
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

struct Tuning {
  int rows, columns, steps;
  int threads_down, threads_along;
  int thread_rows, thread_columns;
  [[nodiscard]] constexpr int threads() const { return threads_down * threads_along; }
};
constexpr Tuning tuning{.rows = 128,
                        .columns = 128,
                        .steps = 8,
                        .threads_down = 16,
                        .threads_along = 16,
                        .thread_rows = 8,
                        .thread_columns = 8};

template <class Sum>
struct Tiles {
  Sum a[tuning.rows][tuning.steps + 1];  // laid out like A; the odd pitch spreads rows over banks
  Sum b[tuning.steps][tuning.columns];
};
template <class Sum>
constexpr Tiling tiling{.rows = tuning.rows,
                        .columns = tuning.columns,
                        .block = {tuning.threads_along, tuning.threads_down},
                        .shared_bytes = sizeof(Tiles<Sum>)};

template <class P>
__global__ void __launch_bounds__(tuning.threads()) gemm_any_strides(P p) {
  using Sum = typename P::Sum;
  Tiles<Sum>& tiles = shared<Tiles<Sum>>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tuning.rows;
  const int first_column = static_cast<int>(blockIdx.x) * tuning.columns;
  // A thread's rows and columns are 16 apart: adjacent lanes read adjacent words of B's tile and
  // write adjacent columns of C.
  const auto row = [](int i) { return static_cast<int>(threadIdx.y) + i * tuning.threads_down; };
  const auto column = [](int j) {
    return static_cast<int>(threadIdx.x) + j * tuning.threads_along;
  };
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);
  Sum sums[tuning.thread_rows][tuning.thread_columns] = {};
  for (std::int64_t k = 0; k < p.k(); k += tuning.steps) {
    load_tile<tuning.rows, tuning.steps, tuning.threads()>(
        a, first_row, k, [&](int r, int step, Sum value) { tiles.a[r][step] = value; });
    load_tile<tuning.steps, tuning.columns, tuning.threads()>(
        b, k, first_column, [&](int step, int c, Sum value) { tiles.b[step][c] = value; });
    __syncthreads();
#pragma unroll
    for (int step = 0; step < tuning.steps; ++step) {
      Sum a_values[tuning.thread_rows];
      Sum b_values[tuning.thread_columns];
#pragma unroll
      for (int i = 0; i < tuning.thread_rows; ++i) a_values[i] = tiles.a[row(i)][step];
#pragma unroll
      for (int j = 0; j < tuning.thread_columns; ++j) b_values[j] = tiles.b[step][column(j)];
      multiply_add(sums, a_values, b_values);
    }
    __syncthreads();
  }
  finish_tile<1>(
      p, batch, sums, [&](int i) { return first_row + row(i); },
      [&](int j) { return first_column + column(j); });
}

void run(const Gemm::Args& args, Context& context) {
  with_product(args, [&]<class P>(const P& p) {
    launch_tiles(context, tiling<typename P::Sum>, gemm_any_strides<P>, p);
  });
}

Work work(const Gemm::Args& args, const Context& context) {
  const bool doubles = args.a.dtype == DType::f64;
  Work work = tile_work(args, context,
                        {.rows = tuning.rows,
                         .columns = tuning.columns,
                         .depth = tuning.steps,
                         .resident = doubles ? 1 : 2});
  if (doubles) work.path = "f64";
  return work;
}

const Rung<Gemm> self{{.name = "any_strides",
                       .after = "register_tile_2d",
                       .backend = device_backend,
                       .supports = require_wide_types,
                       .tile = {.rows = tuning.rows, .columns = tuning.columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
