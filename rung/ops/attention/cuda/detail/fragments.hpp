// SPDX-License-Identifier: Apache-2.0
// Fragments of mma.m16n8k16 (device/ptx/matrix.hpp says who has what) of f16 and bf16.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/core/bounds.hpp"
#include "rung/core/dtype.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/convert.hpp"
#include "rung/device/ptx/matrix.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

template <class T>
__device__ __forceinline__ std::uint32_t pack_pair(float low, float high) {
  const Pack<T, 2> both = convert<T>(Pack<float, 2>{{low, high}});
  return std::uint32_t{both[0].bits} | std::uint32_t{both[1].bits} << 16;
}

/// Infinities and NaN in what a lane has of V: keys 2 t, 2 t + 1, 2 t + 8 and 2 t + 9, where
/// t = lane % 4, of column lane / 4. Queries that do not see a key must not even multiply it by 0;
/// those that see it get NaN. `seen` counts from the first of the 16 keys.
template <class T>
__device__ __forceinline__ void hide_unseen(std::uint32_t (&v)[2], const int (&seen)[2],
                                            float (&o)[4]) {
  constexpr std::uint32_t exponent = std::is_same_v<T, f16> ? 0x7c00 : 0x7f80;
  const int t = lane_of_thread() % 4;
  int first = 16;  // key that is not finite
#pragma unroll
  for (int at = 3; at >= 0; --at) {
    const std::uint32_t bits = v[at / 2] >> at % 2 * 16 & exponent;
    if (bits != exponent) continue;
    v[at / 2] &= at % 2 == 0 ? 0xffff0000u : 0x0000ffffu;
    first = 2 * t + at / 2 * 8 + at % 2;
  }
  first = smaller(first, shuffle_xor(first, 1));
  first = smaller(first, shuffle_xor(first, 2));
#pragma unroll
  for (int column = 0; column < 2; ++column) {
    const int of_column = shuffle(first, (2 * t + column) * 4);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (of_column < seen[r]) o[2 * r + column] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
