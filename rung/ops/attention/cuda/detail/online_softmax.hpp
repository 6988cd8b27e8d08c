// SPDX-License-Identifier: Apache-2.0 Softmax of rows whose scores come a tile of keys at a time,
// in the registers in which tensor cores leave them (rung/device/tile/accumulator.hpp).
#pragma once

#include "rung/device/ptx/thread.hpp"
#include "rung/device/tile/accumulator.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

constexpr int warp_rows = 16;
constexpr float no_score = -__builtin_huge_valf();

/// Hides the scores of keys from visible[row] on; the tile's keys start at first_key.
template <int Registers>
__device__ __forceinline__ void hide_scores(float (&scores)[Registers], int first_key,
                                            const int (&visible)[2]) {
  const int first = first_key + 2 * (lane_of_thread() % 4);
#pragma unroll
  for (int i = 0; i < Registers; ++i) {
    if (first + 8 * (i / 4) + i % 2 >= visible[accumulator_row(i)]) scores[i] = no_score;
  }
}

/// Maximum and sum of a lane's two rows.
struct RowSoftmax {
  float max[2] = {no_score, no_score};  // of the scores so far, before they are scaled
  float sum[2] = {0, 0};                // of the powers in this lane's columns

  /// Replaces scores by 2^(scale (score - max)) and adds them to the sums. Values that were
  /// weighted with the earlier maxima are to be multiplied by `factor`.
  template <int Registers>
  __device__ __forceinline__ void add_tile(float (&scores)[Registers], float scale,
                                           float (&factor)[2]) {
    float shift[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float greatest = max[row];
#pragma unroll
      for (int i = 2 * row; i < Registers; i += 4) {
        greatest = fmaxf(greatest, fmaxf(scores[i], scores[i + 1]));
      }
      greatest = fmaxf(greatest, shuffle_xor(greatest, 1));
      greatest = fmaxf(greatest, shuffle_xor(greatest, 2));
      // All weights of a row that has seen no key are 2^-infinity, not 2^NaN.
      shift[row] = greatest == no_score ? 0.0f : greatest * scale;
      factor[row] = ptx::fast_exp2(fmaf(max[row], scale, -shift[row]));
      max[row] = greatest;
    }
    float tile_sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < Registers; ++i) {
      scores[i] = ptx::fast_exp2(fmaf(scores[i], scale, -shift[accumulator_row(i)]));
      tile_sum[accumulator_row(i)] += scores[i];
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) sum[row] = fmaf(sum[row], factor[row], tile_sum[row]);
  }

  /// Adds up the four lanes' sums, after the last tile.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      sum[row] += shuffle_xor(sum[row], 1);
      sum[row] += shuffle_xor(sum[row], 2);
    }
  }
  /// Returns the factor of the weighted sums; 0 for a row that sees no key.
  [[nodiscard]] __device__ __forceinline__ float reciprocal(int row) const {
    return sum[row] == 0 ? 0.0f : 1.0f / sum[row];
  }
  /// Returns the logarithm of the sum of e^(score).
  [[nodiscard]] __device__ __forceinline__ float log_sum(int row, float scale) const {
    constexpr float ln2 = 0.69314718f;
    return sum[row] == 0 ? no_score : (max[row] * scale + __log2f(sum[row])) * ln2;
  }
};

}  // namespace rung::attention_cuda::inline RUNG_TARGET
