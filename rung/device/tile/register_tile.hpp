// SPDX-License-Identifier: Apache-2.0
// RegisterTile: partition of a tile of C among the warps and threads of a block, with fragment
// loads from shared memory and outer products in registers.
//
//   constexpr TileShape shape{.rows = 128, .columns = 256, .steps = 8, ...};
//   using Tile = RegisterTile<shape>;
//   typename Tile::Sums sums = {};                                       // of the calling thread
//   load_fragment<shape.thread_rows, shape.lanes_down() * 4>(a, &tile_a[step][Tile::row(0)]);
//   load_fragment<shape.thread_columns, shape.lanes_along() * 4>(b,
//                                                                &tile_b[step][Tile::column(0)]);
//   multiply_add(sums, a, b);
//   c(first_row + Tile::row(i), first_column + Tile::column(j)) = sums[i][j];
#pragma once

#include "rung/device/load.hpp"

namespace rung::inline RUNG_TARGET {

/// Returns the index of the calling thread in its block.
__device__ inline int thread_index() {
  return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
}

/// Loads Count values in groups of four, with `Apart` words from one group to the next.
template <int Count, int Apart>
__device__ void load_fragment(float (&fragment)[Count], const float* from) {
  constexpr int group = 4;
#pragma unroll
  for (int i = 0; i < Count; i += group) {
    const Pack<float, group> values = load_wide<group>(from + i / group * Apart);
#pragma unroll
    for (int lane = 0; lane < group; ++lane) fragment[i + lane] = values[lane];
  }
}

/// Computes the outer product sums += a b', a column of A's tile times a row of B's, in registers.
/// ThereAndBack: serpentine order, odd rows from the last column to the first, so that successive
/// multiply-adds always share an operand.
template <bool ThereAndBack = false, int Rows, int Columns, class Sum>
__device__ void multiply_add(Sum (&sums)[Rows][Columns], const Sum (&a)[Rows],
                             const Sum (&b)[Columns]) {
#pragma unroll
  for (int i = 0; i < Rows; ++i) {
#pragma unroll
    for (int step = 0; step < Columns; ++step) {
      const int j = ThereAndBack && i % 2 != 0 ? Columns - 1 - step : step;
      sums[i][j] += a[i] * b[j];
    }
  }
}

/// Tile sizes of a kernel's blocks, warps and threads.
struct TileShape {
  int rows, columns, steps;     // per block
  int warp_rows, warp_columns;  // per warp
  int thread_rows, thread_columns;
  int stages;      // tiles in shared memory: one in use, the others in flight
  int blocks;      // per SM, for __launch_bounds__
  int groups = 1;  // groups of warps; each computes the whole tile over its part of the steps

  [[nodiscard]] constexpr int warps_down() const { return rows / warp_rows; }
  [[nodiscard]] constexpr int warps_along() const { return columns / warp_columns; }
  [[nodiscard]] constexpr int group_threads() const { return 32 * warps_down() * warps_along(); }
  [[nodiscard]] constexpr int threads() const { return groups * group_threads(); }
  [[nodiscard]] constexpr int lanes_down() const { return warp_rows / thread_rows; }
  [[nodiscard]] constexpr int lanes_along() const { return warp_columns / thread_columns; }
};

/// The calling thread's part of a block's tile.
template <TileShape shape>
struct RegisterTile {
  static_assert(shape.lanes_down() * shape.lanes_along() == 32, "a warp has 32 lanes");
  static constexpr int group = 4;  // adjacent rows, or columns, per thread
  using Sums = float[shape.thread_rows][shape.thread_columns];

  /// row(i) and column(j) return the position of the calling thread's element (i, j) in the block's
  /// tile. Adjacent lanes own adjacent groups of four, so that fragment loads have no bank
  /// conflicts.
  static __device__ __forceinline__ int row(int i) {
    const int lane = thread_index() % 32 / shape.lanes_along();
    return warp_row() + (i / group * shape.lanes_down() + lane) * group + i % group;
  }
  static __device__ __forceinline__ int column(int j) {
    const int lane = thread_index() % shape.lanes_along();
    return warp_column() + (j / group * shape.lanes_along() + lane) * group + j % group;
  }

  /// warp_row() and warp_column() return the position of the calling warp's part of the tile.
  static __device__ __forceinline__ int warp_row() {
    return group_thread() / 32 % shape.warps_down() * shape.warp_rows;
  }
  static __device__ __forceinline__ int warp_column() {
    return group_thread() / 32 / shape.warps_down() * shape.warp_columns;
  }

  /// group_number() returns the index of the calling thread's group of warps; group_thread()
  /// returns the thread's index in the group.
  static __device__ __forceinline__ int group_number() {
    return shape.groups == 1 ? 0 : thread_index() / shape.group_threads();
  }
  static __device__ __forceinline__ int group_thread() {
    return shape.groups == 1 ? thread_index() : thread_index() % shape.group_threads();
  }
};

}  // namespace rung::inline RUNG_TARGET
