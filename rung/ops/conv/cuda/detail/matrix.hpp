// SPDX-License-Identifier: Apache-2.0
// Two matrices in memory as the operands of a tile: rows x k times k x columns.
#pragma once

#include "rung/ops/conv/shared/cuda/tiles.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

/// A thread's elements of a step's strips of A and B, loaded to registers and then stored to shared
/// memory: a[row][k] with contiguous k, b[k][column] with contiguous columns; zeros beyond the
/// matrices.
template <class S>
struct MatrixStep {
  const float* a;  // at the tile's first row
  std::int64_t rows;
  const float* b;  // at the tile's first column
  std::int64_t b_row;
  std::int64_t columns;
  std::int64_t terms;  // k; also the row pitch of a
  float of_a[S::row_slots] = {};
  float of_b[S::column_slots] = {};

  __device__ __forceinline__ void load(std::int64_t first) {
#pragma unroll
    for (int slot = 0; slot < S::row_slots; ++slot) {
      const Loaded one = loaded<true, S::rows, S::depth>(slot);
      const std::int64_t k = first + one.k;
      of_a[slot] = one.at < rows && k < terms ? a[one.at * terms + k] : 0.0F;
    }
#pragma unroll
    for (int slot = 0; slot < S::column_slots; ++slot) {
      const Loaded one = loaded<false, S::columns, S::depth>(slot);
      const std::int64_t k = first + one.k;
      of_b[slot] = one.at < columns && k < terms ? b[k * b_row + one.at] : 0.0F;
    }
  }
  __device__ __forceinline__ void store(Strips<float, S>& strips, int stage) const {
    keep_strips<true, false, S>(strips, stage, of_a, of_b);
  }
};

}  // namespace rung::conv_cuda::inline RUNG_TARGET
