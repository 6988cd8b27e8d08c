// SPDX-License-Identifier: Apache-2.0
// transpose / shared tile
//
// Idea     a block loads a tile of 32 x 32 into shared memory row by row, and stores it to y column
//          by column: global loads and stores coalesce, and the transposition happens in shared
//          memory.
// Changes  against naive_write_coalesced: no sector of x is loaded for a single element.
// Cost     4 sectors per warp for loads and for stores. A column of the tile is in a single bank of
//          shared memory: a 32-way bank conflict, left in on purpose to be seen in `rung explain`.
// Limits   4-byte elements; shared memory.
// Source   G. Ruetsch and P. Micikevicius, "Optimizing Matrix Transpose in CUDA", NVIDIA, 2009.
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
    transpose_shared_tile(const __grid_constant__ Matrices<T> m) {
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

void run(const Transpose::Args& args, Context& context) {
  with_words<4>(args, [&]<class T>() {
    launch_tiles<T>(context, tiling<T>, transpose_shared_tile<T>, args);
  });
}

const Rung<Transpose> self{{.name = "shared_tile",
                            .step = 30,
                            .after = "naive_write_coalesced",
                            .backend = device_backend,
                            .teaching = true,
                            .supports = require_words,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run}};

}  // namespace
}  // namespace rung
