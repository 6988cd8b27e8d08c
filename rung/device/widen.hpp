// SPDX-License-Identifier: Apache-2.0
// Packs as they travel, in words, to elements in the type of arithmetic and back. Elements of 16
// bits are never taken apart one by one: left to itself the compiler takes two or three
// instructions per element for that, and a row of them is bound by instructions.
#pragma once

#include <limits>
#include <type_traits>

#include "rung/device/convert.hpp"
#include "rung/device/load.hpp"
#include "rung/device/ptx/halves.hpp"

namespace rung::inline RUNG_TARGET {

#if defined(__CUDA_ARCH__)
/// f(word) for the words of elements of 16 bits, which are two each.
template <class T, int N, class F>
__device__ __forceinline__ void for_each_word(const RawPack<T, N>& raw, F&& f) {
#pragma unroll
  for (const uint4& chunk : raw.chunk) {
    const unsigned words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
    for (const unsigned word : words) f(word);
  }
}
#endif

/// A pack in the type of arithmetic.
template <class T, int N>
__device__ __forceinline__ Pack<Accumulator<T>, N> widen(const RawPack<T, N>& raw) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 2) {
    Pack<float, N> wide;
    int i = 0;
    for_each_word(raw, [&](unsigned word) {
      if constexpr (std::is_same_v<T, bf16>) {
        wide[i++] = __uint_as_float(word << 16);
        wide[i++] = __uint_as_float(word & 0xffff0000U);
      } else {
        __half2 halves;
        __builtin_memcpy(&halves, &word, 4);
        const float2 both = __half22float2(halves);
        wide[i++] = both.x;
        wide[i++] = both.y;
      }
    });
    return wide;
  }
#endif
  return convert<Accumulator<T>>(unpack(raw));
}

/// The same by other instructions, which the compiler cannot know: it would keep elements of 16
/// bits widened from one use to the next, in twice the registers. `zero` is 0, and comes with the
/// call; of a value that differs from row to row it keeps this inside a loop over rows.
template <class T, int N>
__device__ __forceinline__ Pack<Accumulator<T>, N> widen_again(const RawPack<T, N>& raw,
                                                               [[maybe_unused]] unsigned zero) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, bf16>) {
    const unsigned low = 0x1044U | zero;
    const unsigned high = 0x3244U | zero;
    Pack<float, N> wide;
    int i = 0;
    for_each_word(raw, [&](unsigned word) {
      wide[i++] = __uint_as_float(ptx::permute_bytes(word, 0, low));
      wide[i++] = __uint_as_float(ptx::permute_bytes(word, 0, high));
    });
    return wide;
  } else if constexpr (std::is_same_v<T, f16>) {
    RawPack<T, N> same = raw;
#pragma unroll
    for (uint4& chunk : same.chunk) {
      chunk = {chunk.x ^ zero, chunk.y ^ zero, chunk.z ^ zero, chunk.w ^ zero};
    }
    return widen(same);
  }
#endif
  return widen(raw);
}

/// The largest element of packs, in the type of arithmetic; a NaN is passed over.
template <class T, int N, int count>
__device__ __forceinline__ Accumulator<T> largest(const RawPack<T, N> (&packs)[count]) {
  using Sum = Accumulator<T>;
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 2) {  // two at once
    unsigned largest[2] = {};
    for_each_word(packs[0], [&](unsigned word) { largest[0] = largest[1] = word; });
    int turn = 0;
#pragma unroll
    for (const RawPack<T, N>& pack : packs) {
      for_each_word(pack, [&](unsigned word) {
        largest[turn] = ptx::max_halves<T>(largest[turn], word);
        turn ^= 1;
      });
    }
    const unsigned both = ptx::max_halves<T>(largest[0], largest[1]);
    return fmaxf(convert<float>(T::from_bits(static_cast<std::uint16_t>(both))),
                 convert<float>(T::from_bits(static_cast<std::uint16_t>(both >> 16))));
  }
#endif
  Sum largest = -std::numeric_limits<Sum>::infinity();
#pragma unroll
  for (const RawPack<T, N>& pack : packs) {
    const Pack<Sum, N> values = widen(pack);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if constexpr (std::is_same_v<Sum, float>) {
        largest = fmaxf(largest, values[i]);
      } else {
        largest = fmax(largest, values[i]);
      }
    }
  }
  return largest;
}

/// Rounded to T, as it travels.
template <class T, int N>
__device__ __forceinline__ RawPack<T, N> narrow(const Pack<Accumulator<T>, N>& values) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 2) {
    RawPack<T, N> raw;
    int i = 0;
    const auto both = [&] {
      unsigned word;
      if constexpr (std::is_same_v<T, bf16>) {
        const __nv_bfloat162 halves = __floats2bfloat162_rn(values[i], values[i + 1]);
        __builtin_memcpy(&word, &halves, 4);
      } else {
        const __half2 halves = __floats2half2_rn(values[i], values[i + 1]);
        __builtin_memcpy(&word, &halves, 4);
      }
      i += 2;
      return word;
    };
#pragma unroll
    for (uint4& chunk : raw.chunk) {
      chunk.x = both();
      chunk.y = both();
      chunk.z = both();
      chunk.w = both();
    }
    return raw;
  }
#endif
  return rung::raw(convert<T>(values));
}

}  // namespace rung::inline RUNG_TARGET
