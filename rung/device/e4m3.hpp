// SPDX-License-Identifier: Apache-2.0
// Conversions of e4m3 in kernels. All are exact. Compute capability 8.9 has instructions for them;
// elsewhere a value moves into the wider type as a number with a smaller exponent, which a product
// corrects.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"
#include "rung/device/ptx/half_multiply.hpp"

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

namespace device_detail {
/// Multiplies both halves by a power of two that leaves them in the range of T.
template <class T>
__device__ __forceinline__ std::uint32_t scale_halves(std::uint32_t word, T power) {
  constexpr std::uint32_t minus_zero = 0x80008000;  // the sum with it keeps the sign of a zero
  const std::uint32_t powers = power.bits * 0x10001u;
  if constexpr (std::is_same_v<T, f16>) {
    return ptx::multiply_add_halves(word, powers, minus_zero);
  } else {
#if defined(__CUDACC__)
    std::uint32_t scaled;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(scaled) : "r"(word), "r"(powers), "r"(minus_zero));
    return scaled;
#else
    const auto half = [&](int shift) {
      const auto value = bf16::from_bits(static_cast<std::uint16_t>(word >> shift));
      return std::uint32_t{bf16(static_cast<float>(value) * static_cast<float>(power)).bits}
             << shift;
    };
    return half(0) | half(16);
#endif
  }
}
}  // namespace device_detail

/// Converts four e4m3, element i in byte i of `bytes`, to two words of two f16 or bf16 each.
template <class T>
__device__ __forceinline__ void widen_e4m3(std::uint32_t bytes, std::uint32_t& first,
                                           std::uint32_t& second) {
  constexpr bool is_half = std::is_same_v<T, f16>;
  static_assert(is_half || std::is_same_v<T, bf16>);
#if defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ >= 890
  const auto pair = [](std::uint32_t both) {
    std::uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(both)));
    if constexpr (is_half) {
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
  return;
#endif
#endif
  constexpr int shift = is_half ? 1 : 4;           // aligns the exponents' last bits
  constexpr std::uint32_t each = 0x10001;          // 1 in each half
  constexpr T power(is_half ? 0x1p8F : 0x1p120F);  // corrects their bias
  constexpr std::uint32_t nan = is_half ? 0x7e00 : 0x7fc0;
  const auto widened_pair = [&](std::uint32_t pair) {  // in the high bytes of the halves
    const std::uint32_t magnitude = (pair & 0x7f00 * each) >> shift;
    const std::uint32_t small = (pair & 0x8000 * each) | magnitude;
    // One more than the largest magnitude, that of NaN, carries into the next bit.
    const std::uint32_t is_nan = (magnitude + (0x100 >> shift) * each) >> (15 - shift) & each;
    return device_detail::scale_halves<T>(small, power) | is_nan * nan;
  };
  first = widened_pair(__byte_perm(bytes, 0, 0x1404));
  second = widened_pair(__byte_perm(bytes, 0, 0x3424));
}

}  // namespace rung::inline RUNG_TARGET
