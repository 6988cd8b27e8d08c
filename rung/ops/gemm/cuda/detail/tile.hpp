// SPDX-License-Identifier: Apache-2.0
// Building blocks of kernels with tiles in shared memory: copying a tile, multiplying fragments.
#pragma once

#include <cstdint>

#include "rung/device/load.hpp"
#include "rung/device/tile/register_tile.hpp"
#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Copies a Rows x Columns tile from global memory, any strides, with all Threads of the block:
/// put(row, column, value) stores each element. Elements beyond the matrix are zero, so the
/// multiplication needs no bounds checks. Adjacent threads load adjacent addresses, along whichever
/// axis is contiguous.
template <int Rows, int Columns, int Threads, class T, class Put>
__device__ void load_tile(const View<const T, 2>& from, std::int64_t first_row,
                          std::int64_t first_column, Put put) {
  static_assert(Rows * Columns % Threads == 0, "every thread copies as many elements");
  const bool along_columns = from.strides[1] <= from.strides[0];
  const std::int64_t rows = from.shape[0] - first_row;
  const std::int64_t columns = from.shape[1] - first_column;
  const T* tile = from.data + from.offset(first_row, first_column);
#pragma unroll
  for (int i = 0; i < Rows * Columns / Threads; ++i) {
    const int at = thread_index() + i * Threads;
    const int row = along_columns ? at / Columns : at % Rows;
    const int column = along_columns ? at % Columns : at / Rows;
    const bool inside = row < rows && column < columns;
    put(row, column,
        inside ? convert<Accumulator<T>>(tile[row * from.strides[0] + column * from.strides[1]])
               : Accumulator<T>(0));
  }
}

/// Copier of a tile of a matrix with aligned rows (see require_aligned_rows), four elements per
/// instruction, in two phases: load() fills registers and put() stores them, so that other work can
/// overlap. Guarded: zero beyond the matrix; else the whole tile must be inside.
template <int Rows, int Columns, int Threads>
class VectorTile {
  static constexpr int width = 4;
  static constexpr int count = Rows * Columns / width / Threads;
  static_assert(count * width * Threads == Rows * Columns, "every thread copies as many vectors");
  Pack<float, width> values_[count];

  static __device__ int row(int i) { return (thread_index() + i * Threads) / (Columns / width); }
  static __device__ int column(int i) {
    return (thread_index() + i * Threads) % (Columns / width) * width;
  }

 public:
  template <bool Guarded>
  __device__ void load(const View<const float, 2>& from, std::int64_t first_row,
                       std::int64_t first_column) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const std::int64_t at_row = first_row + row(i);
      const std::int64_t at_column = first_column + column(i);
      const float* at = from.data + at_row * from.strides[0] + at_column;
      if constexpr (Guarded) {
        const std::int64_t valid = at_row < from.shape[0] ? from.shape[1] - at_column : 0;
        values_[i] = load_wide<width>(at, valid);
      } else {
        values_[i] = load_wide<width>(at);
      }
    }
  }

  /// Calls put(row, column, values) with four values along the row.
  template <class Put>
  __device__ void put(Put put) const {
#pragma unroll
    for (int i = 0; i < count; ++i) put(row(i), column(i), values_[i]);
  }
};

/// Distribution of a 128 x 128 tile over 16 x 16 threads, in the rungs from `vectorized` on: each
/// thread computes 8 x 8 elements of C in groups of four, so that fragments are read 16 bytes at a
/// time. The groups are 64 apart: 16 adjacent lanes read 256 contiguous bytes, without bank
/// conflicts.
struct GroupedTile {
  static constexpr int extent = 128;  // rows and columns
  static constexpr int threads_along = 16;
  static constexpr int threads = threads_along * threads_along;
  static constexpr int group = 4;
  static constexpr int fragment = 8;
  static constexpr int apart = threads_along * group;

  /// Returns the tile index of fragment element i of the thread at `position` (0..15) of an axis.
  static __device__ int at(int position, int i) {
    return i / group * apart + position * group + i % group;
  }
  static __device__ int row(int i) { return at(thread_index() / threads_along, i); }
  static __device__ int column(int i) { return at(thread_index() % threads_along, i); }
};

/// Loads the 4-byte word at index `at` of a row.
template <class T, int Pitch>
__device__ std::uint32_t word(const T (&row)[Pitch], int at) {
  typedef std::uint32_t Word __attribute__((may_alias));
  return reinterpret_cast<const Word*>(&row[0])[at];
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
