// SPDX-License-Identifier: Apache-2.0
// 16-byte packs of a row held as four 32-bit words, and their conversion to and from the
// accumulator type. 16-bit elements stay packed in registers between the load and each use.
//
// Shapes   vector_width<T> elements per pack: 2 f64, 4 f32, 8 f16 or bf16.
// Cost     4 registers per pack; one instruction per element to widen bf16, one per two for f16.
#pragma once

#include <type_traits>

#include "rung/device/convert.hpp"
#include "rung/device/load.hpp"

namespace rung::inline RUNG_TARGET {

/// 16 bytes of elements as four 32-bit words. Held as 16-bit elements, the compiler unpacks and
/// packs each word at every use.
using PackedWords = Pack<unsigned, 4>;

template <class T>
__device__ __forceinline__ PackedWords words_of(const Pack<T, vector_width<T>>& pack) {
  return __builtin_bit_cast(PackedWords, pack);
}

/// Unpacks to the accumulator type.
template <class Sum, class T>
__device__ __forceinline__ Pack<Sum, vector_width<T>> widen(const PackedWords& words) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, bf16>) {
    Pack<Sum, vector_width<T>> wide;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      wide[2 * i] = __uint_as_float(words[i] << 16);
      wide[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000U);
    }
    return wide;
  } else if constexpr (std::is_same_v<T, f16>) {
    Pack<Sum, vector_width<T>> wide;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      __half2 halves;
      __builtin_memcpy(&halves, &words[i], 4);
      const float2 both = __half22float2(halves);
      wide[2 * i] = both.x;
      wide[2 * i + 1] = both.y;
    }
    return wide;
  }
#endif
  return convert<Sum>(__builtin_bit_cast(Pack<T, vector_width<T>>, words));
}
/// Rounds results to a type that fills the same 16 bytes.
template <class Y, class Sum, int width>
__device__ __forceinline__ PackedWords narrow(const Pack<Sum, width>& values) {
  static_assert(sizeof(Y) * width == sizeof(PackedWords));
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<Y, bf16> || std::is_same_v<Y, f16>) {
    PackedWords words;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (std::is_same_v<Y, bf16>) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
        __builtin_memcpy(&words[i], &both, 4);
      } else {
        const __half2 both = __floats2half2_rn(values[2 * i], values[2 * i + 1]);
        __builtin_memcpy(&words[i], &both, 4);
      }
    }
    return words;
  }
#endif
  return words_of<Y>(convert<Y>(values));
}

/// Calls f(value, index in its pack) for every value of the packs.
template <class Sum, int packs, int width, class F>
__device__ __forceinline__ void for_each_value(Pack<Sum, width> (&values)[packs], F&& f) {
#pragma unroll
  for (int k = 0; k < packs; ++k) {
#pragma unroll
    for (int i = 0; i < width; ++i) f(values[k][i], i);
  }
}

}  // namespace rung::inline RUNG_TARGET
