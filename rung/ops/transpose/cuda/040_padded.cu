// SPDX-License-Identifier: Apache-2.0
// transpose / padded
//
// Idea     rows of the tile are 33 words apart instead of 32: the elements of a column are in
//          consecutive banks.
// Changes  against shared_tile: one word of padding per row, and no bank conflicts.
// Cost     4 sectors per warp for loads and for stores; shared memory at its full rate. A thread
//          moves one element, so few bytes are in flight.
// Limits   4-byte elements; latency-bound. The padding prevents wide accesses: row 1 starts 4 bytes
//          past a 16-byte boundary.
// Source   G. Ruetsch and P. Micikevicius, "Optimizing Matrix Transpose in CUDA", NVIDIA, 2009.
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

constexpr int side = 32;

template <class T>
struct TileBuffer {
  T at[side][side + 1];  // the odd pitch puts a column into 32 different banks
};
template <class T>
constexpr Tiling tiling{
    .rows = side, .columns = side, .block = {side, side}, .shared_bytes = sizeof(TileBuffer<T>)};

template <class T>
__global__ void __launch_bounds__(side* side)
    transpose_padded(const __grid_constant__ Matrices<T> m) {
  TileBuffer<T>& tile = shared<TileBuffer<T>>();
  const auto [x, y] = m.matrix(blockIdx.z);
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  const int first_row = static_cast<int>(blockIdx.x) * side;
  const int first_column = static_cast<int>(blockIdx.y) * side;
  if (first_row + warp < m.rows && first_column + lane < m.columns) {
    tile.at[warp][lane] = x[(first_row + warp) * m.x_row + (first_column + lane) * m.x_column];
  }
  __syncthreads();
  // Lanes read a column of the tile, which is a row of y.
  if (first_row + lane < m.rows && first_column + warp < m.columns) {
    y[(first_column + warp) * m.y_row + (first_row + lane) * m.y_column] = tile.at[lane][warp];
  }
}

Work work(const Transpose::Args& args, const Context&) { return tiles_work(args, tiling<Word<4>>); }

void run(const Transpose::Args& args, Context& context) {
  with_words<4>(args,
                [&]<class T>() { launch_tiles<T>(context, tiling<T>, transpose_padded<T>, args); });
}

const Rung<Transpose> self{{.name = "padded",
                            .step = 40,
                            .after = "shared_tile",
                            .backend = device_backend,
                            .supports = require_words,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
