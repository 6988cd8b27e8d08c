// SPDX-License-Identifier: Apache-2.0
// Two matrices in memory as the operands of a tile: rows x k by k x columns.
#pragma once

#include "rung/ops/conv/shared/cuda/tiles.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

/// a[row][k] with contiguous k, b[k][column] with contiguous columns.
template <class S>
struct MatrixSource {
  static constexpr bool rows_by_k = true;
  static constexpr bool columns_by_k = false;

  const float* a;
  std::int64_t a_row;
  std::int64_t rows;
  const float* b;
  std::int64_t b_row;
  std::int64_t columns;

  __device__ __forceinline__ void refill(Entry& entry, std::int64_t k, std::int64_t end) const {
    entry = {k * b_row, k < end ? k : -1, 0, 0, 0, 0};
  }
  [[nodiscard]] __device__ __forceinline__ float row(int slot, const Entry& entry) const {
    const int at = loaded<true, S::rows, S::depth>(slot).at;
    return entry.other >= 0 && at < rows ? a[at * a_row + entry.other] : 0.0F;
  }
  [[nodiscard]] __device__ __forceinline__ float column(int slot, const Entry& entry) const {
    const int at = loaded<false, S::columns, S::depth>(slot).at;
    return entry.other >= 0 && at < columns ? b[entry.image + at] : 0.0F;
  }
};

}  // namespace rung::conv_cuda::inline RUNG_TARGET
