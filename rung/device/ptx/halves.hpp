// SPDX-License-Identifier: Apache-2.0
// Packed operations on words that hold two f16 or bf16.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

/// Returns the maximum in each half; drops a NaN.
template <class T>
__device__ __forceinline__ std::uint32_t max_halves(std::uint32_t a, std::uint32_t b) {
  std::uint32_t greater;
  if constexpr (std::is_same_v<T, f16>) {
    asm("max.f16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
  } else {
    static_assert(std::is_same_v<T, bf16>);
    asm("max.bf16x2 %0, %1, %2;" : "=r"(greater) : "r"(a), "r"(b));
  }
  return greater;
}

/// Permutes bytes: byte i of the result is byte (Selector >> 4 i) % 16 of {a, b}, a's four bytes
/// first. Always compiles to PRMT; the compiler may replace __byte_perm by other instructions.
template <unsigned Selector>
__device__ __forceinline__ std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b) {
  std::uint32_t permuted;
  asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(permuted) : "r"(a), "r"(b), "n"(Selector));
  return permuted;
}
/// Permutes bytes by a selector that is known at run time.
__device__ __forceinline__ std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b,
                                                       std::uint32_t selector) {
  return __byte_perm(a, b, selector);
}

#else

template <class T>
std::uint32_t max_halves(std::uint32_t a, std::uint32_t b) {
  std::uint32_t greater = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const T left = T::from_bits(static_cast<std::uint16_t>(a >> shift));
    const T right = T::from_bits(static_cast<std::uint16_t>(b >> shift));
    const auto x = static_cast<float>(left);
    const auto y = static_cast<float>(right);
    greater |= std::uint32_t{(x > y || y != y ? left : right).bits} << shift;
  }
  return greater;
}

template <unsigned Selector>
std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b) {
  return __byte_perm(a, b, Selector);
}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
