// SPDX-License-Identifier: Apache-2.0
// RowTile: rows of a head in shared memory, laid out for ldmatrix without bank conflicts. The
// mma.sync kernels of attention and its gradient share it. Sizes are below 2^30, so indices are
// int.
#pragma once

#include <cstdint>

#include "rung/core/view.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/load_anywhere.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/device/swizzled_tile.hpp"

namespace rung::inline RUNG_TARGET {

/// Addresses of the rows of a head.
template <class T>
struct RowsAtStride {
  const T* data;
  std::int64_t stride;
  __device__ __forceinline__ const T* operator()(int row) const { return data + row * stride; }
};

/// A tile of rows in swizzled panels of 64 columns.
template <class T, int Rows, int Width>
struct RowTile {
  using Panel = SwizzledTile<T, Rows, true>;
  static constexpr int bytes = Width / Panel::depth * Panel::bytes;

  static __device__ __forceinline__ int place(int row, int column) {
    return column / Panel::depth * Panel::bytes + Panel::place(row, column % Panel::depth);
  }

  /// Starts the copy of Rows rows of `columns` columns from row `first`; row_at(i) is the address
  /// of row i. Rows from `end` on, and columns past the last up to a multiple of 16, are filled
  /// with zeros. `wide`: all rows are aligned to 16 bytes.
  template <int Threads, class RowAt>
  static __device__ __forceinline__ void copy(unsigned char* tile, const RowAt& row_at, int columns,
                                              int first, int end, bool wide) {
    copy_if<Threads>(
        tile, row_at, columns, first, [=](int row) { return row < end; }, wide);
  }
  /// Starts the copy of rows of a head; those outside [begin, end) are filled with zeros.
  template <int Threads>
  static __device__ __forceinline__ void copy_between(unsigned char* tile,
                                                      const View<const T, 2>& from, int first,
                                                      int begin, int end, bool wide) {
    copy_if<Threads>(
        tile, RowsAtStride<T>{from.data, from.strides[0]}, static_cast<int>(from.shape[1]), first,
        [=](int row) { return row >= begin && row < end; }, wide);
  }

  /// Loads four 8 x 8 matrices: at (row, column), 8 rows below, 8 columns to the right, and
  /// diagonal.
  template <bool Transposed = false>
  static __device__ __forceinline__ void load(std::uint32_t (&to)[4], const unsigned char* tile,
                                              int row, int column) {
    const int lane = lane_of_thread();
    ptx::load_matrix<4, Transposed>(to, tile + place(row + lane % 16, column + lane / 16 * 8));
  }

 private:
  template <int Threads, class RowAt, class Exists>
  static __device__ __forceinline__ void copy_if(unsigned char* tile, const RowAt& row_at,
                                                 int columns, int first, const Exists& exists,
                                                 bool wide) {
    constexpr int chunk = 8;
    const int chunks = (columns + 15) / 16 * 2;
    for (int i = static_cast<int>(threadIdx.x); i < Rows * chunks; i += Threads) {
      const int row = i / chunks;
      const int column = i % chunks * chunk;
      unsigned char* const to = tile + place(row, column);
      const int valid = exists(first + row) ? max(min(columns - column, chunk), 0) : 0;
      const T* const start = row_at(valid > 0 ? first + row : first);
      if (wide) {
        ptx::async_copy<16>(to, start + (valid > 0 ? column : 0), valid * 2);
      } else {
        store_raw(reinterpret_cast<T*>(to),
                  load_anywhere<chunk>(start, column, valid > 0 ? columns : 0));
      }
    }
  }
};

}  // namespace rung::inline RUNG_TARGET
