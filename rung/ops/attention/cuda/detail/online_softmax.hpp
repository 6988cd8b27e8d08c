// SPDX-License-Identifier: Apache-2.0
// Online softmax on accumulator registers of mma and wgmma (rung/device/tile/accumulator.hpp).
#pragma once

#include "rung/device/ptx/thread.hpp"
#include "rung/device/tile/accumulator.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

constexpr int warp_rows = 16;
constexpr float no_score = -__builtin_huge_valf();

/// Sets the scores of all but the last `window` keys before an end to -infinity. The lane's first
/// row ends at end_key, its second row `later` keys after that; the tile starts at key first_key.
/// One unsigned comparison of the distance to the row's last key finds hidden keys on both sides:
/// after the last key the distance is negative, hence large as an unsigned number.
template <int Registers>
__device__ __forceinline__ void hide_scores(float (&scores)[Registers], int first_key, int end_key,
                                            int later, int window) {
  const int first = first_key + 2 * (lane_of_thread() % 4);
#pragma unroll
  for (int i = 0; i < Registers; ++i) {
    const int end = accumulator_row(i) == 0 ? end_key : end_key + later;
    const int before_last = end - 1 - (first + 8 * (i / 4) + i % 2);
    if (static_cast<unsigned>(before_last) >= static_cast<unsigned>(window)) scores[i] = no_score;
  }
}

/// Running maximum and sum of a lane's two rows.
struct RowSoftmax {
  float max[2] = {no_score, no_score};  // of the scores so far, unscaled
  float sum[2] = {0, 0};                // of the weights in this lane's columns

  /// Replaces each score by its weight 2^(scale (score - max)) and adds the weights to the sums.
  /// The caller multiplies sums weighted with the earlier maxima by `factor`.
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

  /// Adds up the sums of the four lanes of each row; called after the last tile.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      sum[row] += shuffle_xor(sum[row], 1);
      sum[row] += shuffle_xor(sum[row], 2);
    }
  }
  /// Adds a score of a key without a value to each row, after finish(). The caller multiplies the
  /// weighted sums by `factor`.
  __device__ __forceinline__ void add_score(float score, float scale, float (&factor)[2]) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float greatest = fmaxf(max[row], score);
      const float shift = greatest == no_score ? 0.0f : greatest * scale;
      factor[row] = ptx::fast_exp2(fmaf(max[row], scale, -shift));
      sum[row] = fmaf(sum[row], factor[row], ptx::fast_exp2(fmaf(score, scale, -shift)));
      max[row] = greatest;
    }
  }
  /// Returns the factor that normalizes the weighted sums; 0 if the row sees no key.
  [[nodiscard]] __device__ __forceinline__ float reciprocal(int row) const {
    return sum[row] == 0 ? 0.0f : 1.0f / sum[row];
  }
  /// Returns log sum e^s over the scaled scores s; -infinity if the row sees no key.
  [[nodiscard]] __device__ __forceinline__ float log_sum(int row, float scale) const {
    constexpr float ln2 = 0.69314718f;
    return sum[row] == 0 ? no_score : (max[row] * scale + __log2f(sum[row])) * ln2;
  }
};

}  // namespace rung::attention_cuda::inline RUNG_TARGET
