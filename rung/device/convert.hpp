// SPDX-License-Identifier: Apache-2.0
// Conversions between element types inside kernels: hardware instructions under nvcc, core's
// bit-exact functions in the simulator. Both round to nearest, ties to even.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/device/target.hpp"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace rung::inline RUNG_TARGET {

/// Vector of N values, kept in registers if every index is known at compile time.
template <class T, int N>
struct Pack {
  T at[N];
  RUNG_HD RUNG_ALWAYS_INLINE T& operator[](int i) { return at[i]; }
  RUNG_HD RUNG_ALWAYS_INLINE const T& operator[](int i) const { return at[i]; }
};

/// Converts a value to another element type, through float if either is an 8- or 16-bit float.
template <class To, class From>
RUNG_HD RUNG_ALWAYS_INLINE inline To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
#if defined(__CUDA_ARCH__)
  } else if constexpr (std::is_same_v<From, f16>) {
    return static_cast<To>(__half2float(__ushort_as_half(value.bits)));
  } else if constexpr (std::is_same_v<From, bf16>) {
    return static_cast<To>(__uint_as_float(static_cast<unsigned>(value.bits) << 16));
  } else if constexpr (std::is_same_v<To, f16>) {
    return f16::from_bits(__half_as_ushort(__float2half_rn(static_cast<float>(value))));
  } else if constexpr (std::is_same_v<To, bf16>) {
    return bf16::from_bits(__bfloat16_as_ushort(__float2bfloat16_rn(static_cast<float>(value))));
#endif
  } else if constexpr (std::is_class_v<From>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_class_v<To>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

#if defined(__CUDACC__)
namespace device_detail {
/// Converts floats to f16 or bf16, two per instruction.
template <class To, int N>
__device__ __forceinline__ void convert_pairs(const Pack<float, N>& values, Pack<To, N>& to) {
#pragma unroll
  for (int i = 0; i < N; i += 2) {
    unsigned both;
    if constexpr (std::is_same_v<To, f16>) {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(values[i + 1]), "f"(values[i]));
    } else {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(values[i + 1]), "f"(values[i]));
    }
    to[i] = To::from_bits(static_cast<std::uint16_t>(both));
    to[i + 1] = To::from_bits(static_cast<std::uint16_t>(both >> 16));
  }
}
}  // namespace device_detail
#endif

template <class To, class From, int N>
RUNG_HD RUNG_ALWAYS_INLINE inline Pack<To, N> convert(const Pack<From, N>& values) {
  Pack<To, N> converted;
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<From, float> && N % 2 == 0 &&
                (std::is_same_v<To, f16> || std::is_same_v<To, bf16>)) {
    device_detail::convert_pairs(values, converted);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) converted[i] = convert<To>(values[i]);
  }
#else
  for (int i = 0; i < N; ++i) converted[i] = convert<To>(values[i]);
#endif
  return converted;
}

/// Returns zero of any element type.
template <class T>
RUNG_HD RUNG_ALWAYS_INLINE inline T zero() {
  if constexpr (std::is_class_v<T>) {
    return T::from_bits(0);
  } else {
    return T(0);
  }
}

}  // namespace rung::inline RUNG_TARGET
