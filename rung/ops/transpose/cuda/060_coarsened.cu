// SPDX-License-Identifier: Apache-2.0
// transpose / coarsened
//
// Idea     a block of 32 x 8 threads transposes the same tile, four elements per thread: four loads
//          are in flight before the first is used, and addresses are computed once per four
//          elements.
// Changes  against swizzled: four times the bytes in flight per thread, a quarter of the threads.
// Cost     per element a load, a store, and an addition for each of the two addresses.
// Limits   all element sizes and strides, without runs. A 16-byte element takes one access; smaller
//          elements waste the width of the accesses.
// Source   M. Harris, "An Efficient Matrix Transpose in CUDA C/C++", NVIDIA, 2013.
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

constexpr int side = 32;
constexpr int warps = 8;

template <class T>
struct TileBuffer {
  T at[side][side];
};
template <class T>
constexpr Tiling tiling{
    .rows = side, .columns = side, .block = {side, warps}, .shared_bytes = sizeof(TileBuffer<T>)};

template <class T>
__global__ void __launch_bounds__(side* warps)
    transpose_coarsened(const __grid_constant__ Matrices<T> m) {
  TileBuffer<T>& tile = shared<TileBuffer<T>>();
  const auto [x, y] = m.matrix(blockIdx.z);
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  const int first_row = static_cast<int>(blockIdx.x) * side;
  const int first_column = static_cast<int>(blockIdx.y) * side;
  const int rows = m.rows - first_row;  // remaining rows, if fewer than `side`
  const int columns = m.columns - first_column;
  const T* from = x + (first_row + warp) * m.x_row + (first_column + lane) * m.x_column;
  T values[side / warps];
#pragma unroll
  for (int i = 0; i < side / warps; ++i) {
    if (warp + i * warps < rows && lane < columns) values[i] = from[i * warps * m.x_row];
  }
#pragma unroll
  for (int i = 0; i < side / warps; ++i) {
    const int row = warp + i * warps;
    if (row < rows && lane < columns) tile.at[row][lane ^ row] = values[i];
  }
  __syncthreads();
  T* to = y + (first_column + warp) * m.y_row + (first_row + lane) * m.y_column;
#pragma unroll
  for (int i = 0; i < side / warps; ++i) {
    const int column = warp + i * warps;
    if (column < columns && lane < rows) to[i * warps * m.y_row] = tile.at[lane][column ^ lane];
  }
}

Support supports(const Transpose::Args& args, const Context&) {
  return args.moves.run == 1 ? supported : unsupported("takes no runs of several elements");
}

Work work(const Transpose::Args& args, const Context&) {
  Tiling tiles = tiling<Word<4>>;
  tiles.shared_bytes = static_cast<std::size_t>(side * side * args.moves.element_bytes);
  return tiles_work(args, tiles);
}

void run(const Transpose::Args& args, Context& context) {
  with_words<1, 2, 4, 8, 16>(
      args, [&]<class T>() { launch_tiles<T>(context, tiling<T>, transpose_coarsened<T>, args); });
}

const Rung<Transpose> self{{.name = "coarsened",
                            .step = 60,
                            .after = "swizzled",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
