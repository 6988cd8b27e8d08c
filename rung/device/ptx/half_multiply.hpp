// SPDX-License-Identifier: Apache-2.0
// Packed f16x2 arithmetic.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET::ptx {

/// Computes a b + c in each half, rounded once.
__device__ __forceinline__ std::uint32_t multiply_add_halves(std::uint32_t a, std::uint32_t b,
                                                             std::uint32_t c) {
#if defined(__CUDACC__)
  std::uint32_t made;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(made) : "r"(a), "r"(b), "r"(c));
  return made;
#else
  std::uint32_t made = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const auto half = [shift](std::uint32_t word) {
      const auto bits = static_cast<std::uint16_t>(word >> shift);
      return static_cast<double>(static_cast<float>(f16::from_bits(bits)));
    };
    // The product is exact in double. The sum is rounded to odd in float, then to f16: this avoids
    // double rounding.
    const double product = half(a) * half(b);
    const double sum = product + half(c);
    float narrow = static_cast<float>(sum);
    if (static_cast<double>(narrow) != sum && std::isfinite(narrow)) {
      if (std::abs(static_cast<double>(narrow)) > std::abs(sum)) {
        narrow = std::nextafter(narrow, 0.0F);
      }
      narrow = __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, narrow) | 1U);
    }
    made |= std::uint32_t{f16(narrow).bits} << shift;
  }
  return made;
#endif
}

/// Returns half `Which` (0: the low one) as a float.
template <int Which>
__device__ __forceinline__ float half_of(std::uint32_t word) {
  return convert<float>(f16::from_bits(static_cast<std::uint16_t>(word >> (16 * Which))));
}

}  // namespace rung::inline RUNG_TARGET::ptx
