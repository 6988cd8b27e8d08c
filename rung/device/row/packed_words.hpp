// SPDX-License-Identifier: Apache-2.0
// 16-byte packs of a row held as four 32-bit words, and their conversion to and from the
// accumulator type. 16-bit elements stay packed in registers between the load and each use.
//
// Shapes   vector_width<T> elements per pack: 2 f64, 4 f32, 8 f16 or bf16.
// Cost     4 registers per pack; one instruction per element to widen bf16, one per two for f16.
#pragma once

#include <limits>
#include <type_traits>

#include "rung/device/convert.hpp"
#include "rung/device/load.hpp"
#include "rung/device/ptx/halves.hpp"

namespace rung::inline RUNG_TARGET {

/// 16 bytes of elements as four 32-bit words. The compiler would unpack and pack an array of 16-bit
/// elements at every use.
using PackedWords = Pack<unsigned, 4>;

template <class T>
__device__ __forceinline__ PackedWords words_of(const Pack<T, vector_width<T>>& pack) {
  return __builtin_bit_cast(PackedWords, pack);
}
template <class T, int N>
__device__ __forceinline__ PackedWords words_of(const RawPack<T, N>& pack) {
  return __builtin_bit_cast(PackedWords, pack);
}
template <class T>
__device__ __forceinline__ Pack<T, vector_width<T>> pack_of(const PackedWords& words) {
  return __builtin_bit_cast(Pack<T, vector_width<T>>, words);
}

/// Loads (or stores) the 16 aligned bytes at `p`. Streaming: data that is not accessed again.
/// Constant: data that no kernel writes while this one runs.
template <class T>
__device__ __forceinline__ PackedWords load_words(const T* p) {
  return unpack(load_raw<4>(reinterpret_cast<const unsigned*>(p)));
}
template <class T>
__device__ __forceinline__ PackedWords load_words_streaming(const T* p) {
  return unpack(load_raw_streaming<4>(reinterpret_cast<const unsigned*>(p)));
}
template <class T>
__device__ __forceinline__ PackedWords load_words_constant(const T* p) {
  return unpack(load_raw_constant<4>(reinterpret_cast<const unsigned*>(p)));
}
template <class T>
__device__ __forceinline__ void store_words(T* p, const PackedWords& words) {
  store_raw(reinterpret_cast<unsigned*>(p), raw(words));
}
template <class T>
__device__ __forceinline__ void store_words_streaming(T* p, const PackedWords& words) {
  store_raw_streaming(reinterpret_cast<unsigned*>(p), raw(words));
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
  return convert<Sum>(pack_of<T>(words));
}
/// Unpacks again by instructions that the compiler does not merge with an earlier widen(): it would
/// keep the widened elements between two uses, in twice the registers. `zero` is 0 but unknown at
/// compile time; a `zero` derived from the row prevents hoisting out of a loop over rows.
template <class Sum, class T>
__device__ __forceinline__ Pack<Sum, vector_width<T>> widen_again(const PackedWords& words,
                                                                  [[maybe_unused]] unsigned zero) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, bf16>) {
    const unsigned low = 0x1044U | zero;
    const unsigned high = 0x3244U | zero;
    Pack<Sum, vector_width<T>> wide;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      wide[2 * i] = __uint_as_float(ptx::permute_bytes(words[i], 0, low));
      wide[2 * i + 1] = __uint_as_float(ptx::permute_bytes(words[i], 0, high));
    }
    return wide;
  } else if constexpr (std::is_same_v<T, f16>) {
    PackedWords same;
#pragma unroll
    for (int i = 0; i < 4; ++i) same[i] = words[i] ^ zero;
    return widen<Sum, T>(same);
  }
#endif
  return widen<Sum, T>(words);
}

/// Widens one of the two 16-bit elements of a word, the one at the higher address if `upper`. As in
/// widen_again(), `zero` keeps the compiler from hoisting the instruction out of a loop over rows.
template <class T>
__device__ __forceinline__ float widen_half(unsigned word, bool upper,
                                            [[maybe_unused]] unsigned zero) {
  static_assert(sizeof(T) == 2);
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, bf16>) {
    return __uint_as_float(ptx::permute_bytes(word, 0, (upper ? 0x3244U : 0x1044U) | zero));
  } else {
    word ^= zero;
    __half2 halves;
    __builtin_memcpy(&halves, &word, 4);
    return upper ? __high2float(halves) : __low2float(halves);
  }
#else
  return convert<float>(T::from_bits(static_cast<std::uint16_t>(upper ? word >> 16 : word)));
#endif
}
/// Widens both 16-bit elements of a word.
template <class T>
__device__ __forceinline__ Pack<float, 2> widen_pair(unsigned word) {
  static_assert(sizeof(T) == 2);
  Pack<float, 2> wide;
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, bf16>) {
    wide[0] = __uint_as_float(word << 16);
    wide[1] = __uint_as_float(word & 0xffff0000U);
    return wide;
  }
#endif
  wide[0] = widen_half<T>(word, false, 0);
  wide[1] = widen_half<T>(word, true, 0);
  return wide;
}
/// Returns the largest element in the accumulator type; skips NaN. Two 16-bit elements per
/// instruction.
template <class Sum, class T>
__device__ __forceinline__ Sum largest(const PackedWords& words) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 2) {
    const unsigned both = ptx::max_halves<T>(ptx::max_halves<T>(words[0], words[2]),
                                             ptx::max_halves<T>(words[1], words[3]));
    return fmaxf(convert<float>(T::from_bits(static_cast<std::uint16_t>(both))),
                 convert<float>(T::from_bits(static_cast<std::uint16_t>(both >> 16))));
  }
#endif
  Sum most = -std::numeric_limits<Sum>::infinity();
  const Pack<Sum, vector_width<T>> values = widen<Sum, T>(words);
#pragma unroll
  for (int i = 0; i < vector_width<T>; ++i) {
    if constexpr (std::is_same_v<Sum, float>) {
      most = fmaxf(most, values[i]);
    } else {
      most = fmax(most, values[i]);
    }
  }
  return most;
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
