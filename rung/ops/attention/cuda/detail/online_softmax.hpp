// SPDX-License-Identifier: Apache-2.0
// Softmax of rows whose scores come a tile of keys at a time, in the registers in which tensor
// cores leave them (mma.sync and wgmma alike). A warp has 16 rows; with group = lane / 4 and
// t = lane % 4, a lane's scores[i] is of row group + 8 (i / 2 % 2), column 8 (i / 4) + 2 t + i % 2
// of the tile. So the four lanes of a group have two rows between them.
#pragma once

#include <cstdint>

#include "rung/device/collectives.hpp"
#include "rung/device/convert.hpp"
#include "rung/device/ptx/thread.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

constexpr int warp_rows = 16;
constexpr float no_score = -__builtin_huge_valf();

/// Which of its two rows a lane's i-th score belongs to, and at which of the tile's columns it is.
__device__ __forceinline__ constexpr int row_of(int i) { return i / 2 % 2; }
__device__ __forceinline__ int column_of(int i) {
  return 8 * (i / 4) + 2 * (lane_of_thread() % 4) + i % 2;
}

/// Hides the scores of keys from visible[row] on; the tile's keys start at first_key.
template <int Registers>
__device__ __forceinline__ void hide_scores(float (&scores)[Registers], int first_key,
                                            const int (&visible)[2]) {
  const int first = first_key + 2 * (lane_of_thread() % 4);
#pragma unroll
  for (int i = 0; i < Registers; ++i) {
    if (first + 8 * (i / 4) + i % 2 >= visible[row_of(i)]) scores[i] = no_score;
  }
}

/// What a lane knows of its two rows.
struct RowSoftmax {
  float max[2] = {no_score, no_score};  // of the scores so far, before they are scaled
  float sum[2] = {0, 0};                // of the powers in this lane's columns

  /// Scores become 2^(scale (score - max)), and the sums are brought up to date. What was made with
  /// the earlier maxima is to be multiplied by `factor`.
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
      // Of a row that has seen no key, everything is 2^-infinity, not 2^NaN.
      shift[row] = greatest == no_score ? 0.0f : greatest * scale;
      factor[row] = ptx::fast_exp2(fmaf(max[row], scale, -shift[row]));
      max[row] = greatest;
    }
    float tile_sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < Registers; ++i) {
      scores[i] = ptx::fast_exp2(fmaf(scores[i], scale, -shift[row_of(i)]));
      tile_sum[row_of(i)] += scores[i];
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) sum[row] = fmaf(sum[row], factor[row], tile_sum[row]);
  }

  /// After the last tile: adds up the four lanes' sums.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      sum[row] += shuffle_xor(sum[row], 1);
      sum[row] += shuffle_xor(sum[row], 2);
    }
  }
  /// By what the values' sums are to be multiplied; a row that sees no key is zero.
  [[nodiscard]] __device__ __forceinline__ float reciprocal(int row) const {
    return sum[row] == 0 ? 0.0f : 1.0f / sum[row];
  }
  /// The logarithm of the sum of e^(score).
  [[nodiscard]] __device__ __forceinline__ float log_sum(int row, float scale) const {
    constexpr float ln2 = 0.69314718f;
    return sum[row] == 0 ? no_score : (max[row] * scale + __log2f(sum[row])) * ln2;
  }
};

/// values *= factor of their row.
template <int Registers>
__device__ __forceinline__ void scale_rows(float (&values)[Registers], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < Registers; ++i) values[i] *= factor[row_of(i)];
}

/// Two neighbors of a row in a word, the first in its lower half.
template <class T>
__device__ __forceinline__ std::uint32_t halves(float first, float second) {
  const Pack<T, 2> pair = convert<T>(Pack<float, 2>{{first, second}});
  return std::uint32_t{pair[0].bits} | std::uint32_t{pair[1].bits} << 16;
}

/// The powers as the A operand of the second product, 16 keys a step: as they are arranged the
/// registers of a product are those of the next one's A.
template <class T, int Steps>
__device__ __forceinline__ void to_operand(const float (&powers)[8 * Steps],
                                           std::uint32_t (&operand)[Steps][4]) {
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      operand[step][i] = halves<T>(powers[8 * step + 2 * i], powers[8 * step + 2 * i + 1]);
    }
  }
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
