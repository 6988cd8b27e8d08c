// SPDX-License-Identifier: Apache-2.0
// Conversions of e4m3 in kernels; all are exact. Where the GPU has no instruction for them, a value
// moves into the wider type as a number with a smaller exponent, which a product corrects.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"
#include "rung/device/ptx/half_multiply.hpp"
#include "rung/device/ptx/halves.hpp"

namespace rung::inline RUNG_TARGET {

/// Converts a value as convert() does; e4m3 by a few instructions without a branch.
template <class To, class From>
RUNG_HD RUNG_ALWAYS_INLINE inline To widened(From value) {
  if constexpr (std::is_same_v<From, e4m3>) {
    const std::uint32_t magnitude = value.bits & 0x7fu;
    const std::uint32_t bits = (value.bits & 0x80u) << 24 | magnitude << 20;
    const float number = __builtin_bit_cast(float, bits) * 0x1p120F;
    return convert<To>(magnitude == 0x7f ? std::numeric_limits<float>::quiet_NaN() : number);
  } else {
    return convert<To>(value);
  }
}

/// Converts four e4m3, element i in byte i of `bytes`, to two words of two f16 or bf16 each.
template <class T>
__device__ __forceinline__ void widen_e4m3(std::uint32_t bytes, std::uint32_t& first,
                                           std::uint32_t& second) {
  static_assert(std::is_same_v<T, f16> || std::is_same_v<T, bf16>);
#if defined(__CUDACC__)
#if __CUDA_ARCH__ >= 890
  const auto pair = [](std::uint32_t both) {
    std::uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(both)));
    if constexpr (std::is_same_v<T, f16>) {
      return halves;
    } else {
      std::uint32_t wide;
      asm("{\n .reg .b16 low, high;\n .reg .f32 x, y;\n mov.b32 {low, high}, %1;\n"
          " cvt.f32.f16 x, low;\n cvt.f32.f16 y, high;\n cvt.rn.bf16x2.f32 %0, y, x;\n}"
          : "=r"(wide)
          : "r"(halves));
      return wide;
    }
  };
  first = pair(bytes);
  second = pair(bytes >> 16);
#else
  // Elements in the high bytes of halves, whose exponents are then shifted to their places.
  const std::uint32_t pairs[2] = {ptx::permute_bytes(bytes, 0, 0x1404),
                                  ptx::permute_bytes(bytes, 0, 0x3424)};
  constexpr bool is_half = std::is_same_v<T, f16>;
  constexpr int shift = is_half ? 1 : 4;
  constexpr std::uint32_t each = 0x10001;                              // 1 in each half
  constexpr std::uint32_t power = (is_half ? 0x5c00 : 0x7b80) * each;  // 2^8 or 2^120
  constexpr std::uint32_t nan = is_half ? 0x7e00 : 0x7fc0;
  constexpr std::uint32_t minus_zero = 0x8000 * each;
  std::uint32_t made[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t magnitude = (pairs[i] & 0x7f00 * each) >> shift;
    const std::uint32_t small = (pairs[i] & minus_zero) | magnitude;
    // One more than the largest magnitude, that of NaN, carries into the next bit.
    const std::uint32_t is_nan = (magnitude + (0x100 >> shift) * each) >> (15 - shift) & each;
    if constexpr (is_half) {
      made[i] = ptx::multiply_add_halves(small, power, minus_zero);
    } else {
      asm("fma.rn.bf16x2 %0, %1, %2, %3;"
          : "=r"(made[i])
          : "r"(small), "r"(power), "r"(minus_zero));
    }
    made[i] |= is_nan * nan;
  }
  first = made[0];
  second = made[1];
#endif
#else
  const auto wide = [bytes](int element) {
    const auto byte = static_cast<std::uint8_t>(bytes >> 8 * element);
    return std::uint32_t{widened<T>(e4m3::from_bits(byte)).bits};
  };
  first = wide(0) | wide(1) << 16;
  second = wide(2) | wide(3) << 16;
#endif
}

}  // namespace rung::inline RUNG_TARGET
