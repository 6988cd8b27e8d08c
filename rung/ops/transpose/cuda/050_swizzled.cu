// SPDX-License-Identifier: Apache-2.0
// transpose / swizzled
//
// Idea     element (row, column) of the tile is stored in column (column xor row): rows and columns
//          are permutations of the 32 banks.
// Changes  against padded: no padding, and rows stay aligned, which wide accesses need.
// Cost     an xor per access instead of the padding.
// Limits   4-byte elements; still latency-bound.
// Source   NVIDIA CUTLASS, "efficient GEMM": swizzled shared memory layouts.
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

constexpr int side = 32;

template <class T>
struct TileBuffer {
  T at[side][side];
};
template <class T>
constexpr Tiling tiling{
    .rows = side, .columns = side, .block = {side, side}, .shared_bytes = sizeof(TileBuffer<T>)};

template <class T>
__global__ void __launch_bounds__(side* side)
    transpose_swizzled(const __grid_constant__ Matrices<T> m) {
  TileBuffer<T>& tile = shared<TileBuffer<T>>();
  const auto [x, y] = m.matrix(blockIdx.z);
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  const int first_row = static_cast<int>(blockIdx.x) * side;
  const int first_column = static_cast<int>(blockIdx.y) * side;
  if (first_row + warp < m.rows && first_column + lane < m.columns) {
    tile.at[warp][lane ^ warp] =
        x[(first_row + warp) * m.x_row + (first_column + lane) * m.x_column];
  }
  __syncthreads();
  // Lanes read a column of the tile, which is a row of y.
  if (first_row + lane < m.rows && first_column + warp < m.columns) {
    y[(first_column + warp) * m.y_row + (first_row + lane) * m.y_column] =
        tile.at[lane][warp ^ lane];
  }
}

Work work(const Transpose::Args& args, const Context&) { return tiles_work(args, tiling<Word<4>>); }

void run(const Transpose::Args& args, Context& context) {
  with_words<4>(
      args, [&]<class T>() { launch_tiles<T>(context, tiling<T>, transpose_swizzled<T>, args); });
}

const Rung<Transpose> self{{.name = "swizzled",
                            .step = 50,
                            .after = "padded",
                            .backend = device_backend,
                            .supports = require_words,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
