// SPDX-License-Identifier: Apache-2.0
// Sums of a warpgroup in tiles that may be wider than a wgmma.
#pragma once

#include "rung/device/wgmma_tile.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

/// Sums of 64 rows by Columns. A wgmma has at most 256 columns: wider tiles take two, the first of
/// 192 columns, which are whole panels of an MN-major tile.
template <int Columns>
class TileSums {
  static constexpr bool two_ = Columns > 256;
  static constexpr int first_columns_ = two_ ? 192 : Columns;
  float first_[first_columns_ / 2];
  float second_[two_ ? (Columns - first_columns_) / 2 : 1];

 public:
  /// Issues the product of 64 rows of A, from first_row on, and all rows of B, as one group.
  template <class TileA, class TileB>
  __device__ __forceinline__ void multiply(const unsigned char* a, int first_row,
                                           const unsigned char* b, bool accumulate) {
    static_assert(TileB::rows == Columns);
    if constexpr (two_) ptx::wgmma_fence(second_);
    ptx::wgmma_fence(first_);
    wgmma_tile<TileA, TileB>(first_, a, first_row, b, accumulate);
    if constexpr (two_) {
      wgmma_tile<TileA, TileB>(second_, a, first_row, b, accumulate, first_columns_);
    }
    ptx::wgmma_commit();
  }

  /// Waits until at most `Pending` products are in flight.
  template <int Pending>
  __device__ __forceinline__ void wait() {
    ptx::wgmma_wait<Pending>(first_);
    if constexpr (two_) ptx::wgmma_wait<Pending>(second_);
  }

  /// Returns sum `i` of the calling lane, in wgmma's order; i is a constant.
  __device__ __forceinline__ float operator()(int i) const {
    if constexpr (two_) {
      return i < first_columns_ / 2 ? first_[i] : second_[i - first_columns_ / 2];
    } else {
      return first_[i];
    }
  }
};

}  // namespace rung::conv_cuda::inline RUNG_TARGET
