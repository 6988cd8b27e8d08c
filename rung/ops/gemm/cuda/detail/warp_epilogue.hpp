// SPDX-License-Identifier: Apache-2.0
// finish_warp_tile(): epilogue of kernels whose threads own a RegisterTile. Warps write contiguous
// parts of C's rows, also if rows begin at any address.
//
// A lane's sums are groups of four adjacent columns. A store of one element per lane would write
// every fourth element of several rows, and each 32-byte sector of C four times. The lanes of a
// warp therefore exchange their sums through shared memory.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/device/shared.hpp"
#include "rung/device/tile/register_tile.hpp"
#include "rung/ops/gemm/cuda/detail/finish_group.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Exchange buffers of a block, one per warp: adjacent rows of C, four per row of lanes.
template <TileShape shape>
struct WarpRows {
  static constexpr int rows = 4 * shape.lanes_down();
  static constexpr int columns = shape.warp_columns;
  static constexpr int warps = shape.group_threads() / 32;
  static_assert(columns % 32 == 0, "a warp's store of single elements stays in one row");
  alignas(16) float sums[warps][rows][columns];
};

/// Stores alpha times rows of sums, whose first element is C's (row, column): Width adjacent
/// elements per lane, by adjacent lanes.
template <int Width, class P, int Rows, int Columns>
__device__ __forceinline__ void store_rows(const P& p, int batch, std::int64_t row,
                                           std::int64_t column,
                                           const float (&rows)[Rows][Columns]) {
  constexpr int lanes = Columns / Width < 32 ? Columns / Width : 32;  // per row
  constexpr int rows_at_once = 32 / lanes;
  const int lane = thread_index() % 32;
  const auto rows_left = static_cast<int>(smaller<std::int64_t>(p.m() - row, Rows));
  const auto columns_left = static_cast<int>(smaller<std::int64_t>(p.n() - column, Columns));
#pragma unroll 1
  for (int from = lane % lanes * Width; from < columns_left; from += lanes * Width) {
    auto* to = &p.c(batch, row + lane / lanes, column + from);
#pragma unroll 4
    for (int at = lane / lanes; at < rows_left; at += rows_at_once) {
      Pack<float, Width> values = load_wide<Width>(&rows[at][from]);
#pragma unroll
      for (int i = 0; i < Width; ++i) values[i] *= p.alpha;
      if (from + Width <= columns_left) {
        store_wide(to, values);
      } else {
        for (int i = 0; i < columns_left - from; ++i) to[i] = values[i];
      }
      to += rows_at_once * p.c.strides[1];
    }
  }
}

/// Writes the block's tile of C, whose first element is (first_row, first_column). All threads of
/// group 0 call it, after the last access to the shared memory that WarpRows overwrites.
template <TileShape shape, class P>
__device__ __forceinline__ void finish_warp_tile(const P& p, int batch,
                                                 const typename RegisterTile<shape>::Sums& sums,
                                                 int first_row, int first_column) {
  using Tile = RegisterTile<shape>;
  using Rows = WarpRows<shape>;
  constexpr int group = Tile::group;
  static_assert(shape.thread_rows % group == 0 && shape.thread_columns % group == 0);
  const int lane = thread_index() % 32;
  const int lane_row = lane / shape.lanes_along() * group;
  const int lane_column = lane % shape.lanes_along() * group;
  auto& rows = shared<Rows>().sums[Tile::group_thread() / 32];
  const bool plain = is_plain(p);
  const bool wide = takes_wide_stores<group>(p);
  // The loops over rows are rolled, as in finish_tile(): one copy of every activation.
#pragma unroll 1
  for (int i = 0; i < shape.thread_rows; i += group) {
    float picked[group][shape.thread_columns] = {};
#pragma unroll
    for (int candidate = 0; candidate < shape.thread_rows; ++candidate) {
      if (candidate / group == i / group) {
#pragma unroll
        for (int j = 0; j < shape.thread_columns; ++j) {
          picked[candidate % group][j] = sums[candidate][j];
        }
      }
    }
    __syncwarp();  // the rows before have been read
#pragma unroll
    for (int row = 0; row < group; ++row) {
#pragma unroll
      for (int j = 0; j < shape.thread_columns; j += group) {
        Pack<float, group> four;
#pragma unroll
        for (int k = 0; k < group; ++k) four[k] = picked[row][j + k];
        store_wide(&rows[lane_row + row][j * shape.lanes_along() + lane_column], four);
      }
    }
    __syncwarp();
    const std::int64_t row = std::int64_t{first_row} + Tile::warp_row() + i * shape.lanes_down();
    const std::int64_t column = std::int64_t{first_column} + Tile::warp_column();
    if (plain) {
      wide ? store_rows<group>(p, batch, row, column, rows)
           : store_rows<1>(p, batch, row, column, rows);
      continue;
    }
    if (wide) {
      constexpr int lanes = Rows::columns / group;  // per row
#pragma unroll 1
      for (int at = lane / lanes; at < Rows::rows; at += 32 / lanes) {
        const int from = lane % lanes * group;
        finish_group(p, true, batch, row + at, column + from, load_wide<group>(&rows[at][from]));
      }
      continue;
    }
    // A warp of a large tile has 128 elements per lane, whose loads would follow one another. Small
    // tiles have more blocks per SM, and no registers for four elements at a time.
    constexpr int rows_at_once = shape.thread_rows > 8 ? group : 1;
#pragma unroll 1
    for (int at = 0; at < Rows::rows && row + at < p.m(); at += rows_at_once) {
#pragma unroll 1
      for (int from = lane; from < Rows::columns && column + from < p.n(); from += 32) {
        if constexpr (rows_at_once == 1) {
          finish(p, batch, row + at, column + from, rows[at][from]);
        } else {
          Pack<float, group> four;
#pragma unroll
          for (int k = 0; k < group; ++k) four[k] = rows[at + k][from];
          finish_group<1>(p, false, batch, row + at, column + from, four);
        }
      }
    }
  }
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
