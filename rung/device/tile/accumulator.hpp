// SPDX-License-Identifier: Apache-2.0
// Accumulator layout of mma.sync and wgmma: position of a lane's elements, and conversion to the A
// operand of the next product.
//
// Shapes   16 rows per warp by 2 * Registers columns. With group = lane / 4 and t = lane % 4, a
//          lane's values[i] is in row group + 8 (i / 2 % 2), column 8 (i / 4) + 2 t + i % 2: each
//          group of four lanes holds two rows.
// Cost     no shuffle and no shared memory.
#pragma once

#include <cstdint>

#include "rung/device/collectives.hpp"
#include "rung/device/convert.hpp"

namespace rung::inline RUNG_TARGET {

/// accumulator_row() returns which of the lane's two rows (0 or 1) value i is in;
/// accumulator_column() returns its column.
__device__ __forceinline__ constexpr int accumulator_row(int i) { return i / 2 % 2; }
__device__ __forceinline__ int accumulator_column(int i) {
  return 8 * (i / 4) + 2 * (lane_of_thread() % 4) + i % 2;
}

/// Multiplies each value by its row's factor.
template <int Registers>
__device__ __forceinline__ void scale_rows(float (&values)[Registers], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < Registers; ++i) values[i] *= factor[accumulator_row(i)];
}

/// Converts two floats to 16 bits and packs them into a word, the first in the lower half.
template <class T>
__device__ __forceinline__ std::uint32_t pack_halves(float first, float second) {
  const Pack<T, 2> pair = convert<T>(Pack<float, 2>{{first, second}});
  return std::uint32_t{pair[0].bits} | std::uint32_t{pair[1].bits} << 16;
}

/// Converts accumulators to the A operand of the next product, 16 columns per step: accumulator and
/// A registers have the same layout.
template <class T, int Steps>
__device__ __forceinline__ void to_operand(const float (&values)[8 * Steps],
                                           std::uint32_t (&operand)[Steps][4]) {
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      operand[step][i] = pack_halves<T>(values[8 * step + 2 * i], values[8 * step + 2 * i + 1]);
    }
  }
}

}  // namespace rung::inline RUNG_TARGET
