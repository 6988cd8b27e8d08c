// SPDX-License-Identifier: Apache-2.0
// Arithmetic and bit intrinsics of the simulated GPU. Intrinsics that are approximate on a GPU
// (__expf, __fdividef ...) are correctly rounded or nearly so in the simulator, so tests must not
// rely on their exact bits, neither on a GPU nor in the simulator.
#pragma once

#include <math.h>  // NOLINT: fmaf etc. must be in the global namespace, as under nvcc

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <type_traits>

// Macros, because the C library declares functions of these names for its own use: an overload
// would be ambiguous, and the library's functions cannot be linked.
#define __expf(a) expf(a)
#define __exp10f(a) powf(10.0f, a)
#define __logf(a) logf(a)
#define __log2f(a) log2f(a)
#define __powf(a, b) powf(a, b)
#define __sinf(a) sinf(a)
#define __cosf(a) cosf(a)

namespace rung::simt::dialect {

using ::printf;

template <class A, class B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> min(
    A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) {
    // If one operand is NaN, returns the other, as on a GPU.
    return fmin(static_cast<T>(a), static_cast<T>(b));
  } else {
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b);
  }
}
template <class A, class B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> max(
    A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) {
    return fmax(static_cast<T>(a), static_cast<T>(b));
  } else {
    return static_cast<T>(a) > static_cast<T>(b) ? static_cast<T>(a) : static_cast<T>(b);
  }
}

inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
// Never contracted to a fused multiply-add: preventing contraction is the purpose of the _rn
// intrinsics.
inline float __fadd_rn(float a, float b) {
  volatile float sum = a + b;
  return sum;
}
inline float __fsub_rn(float a, float b) {
  volatile float sum = a - b;
  return sum;
}
inline float __fmul_rn(float a, float b) {
  volatile float product = a * b;
  return product;
}
inline double __dadd_rn(double a, double b) {
  volatile double sum = a + b;
  return sum;
}
inline double __dmul_rn(double a, double b) {
  volatile double product = a * b;
  return product;
}
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }
inline float rsqrtf(float a) { return static_cast<float>(1.0 / sqrt(static_cast<double>(a))); }
inline double rsqrt(double a) { return 1.0 / sqrt(a); }

constexpr int __float_as_int(float a) { return std::bit_cast<int>(a); }
constexpr unsigned __float_as_uint(float a) { return std::bit_cast<unsigned>(a); }
constexpr float __int_as_float(int a) { return std::bit_cast<float>(a); }
constexpr float __uint_as_float(unsigned a) { return std::bit_cast<float>(a); }
constexpr long long __double_as_longlong(double a) { return std::bit_cast<long long>(a); }
constexpr double __longlong_as_double(long long a) { return std::bit_cast<double>(a); }
inline int __float2int_rn(float a) { return static_cast<int>(nearbyintf(a)); }
inline int __float2int_rz(float a) { return static_cast<int>(a); }
inline int __float2int_rd(float a) { return static_cast<int>(floorf(a)); }
inline int __float2int_ru(float a) { return static_cast<int>(ceilf(a)); }
/// Converts with saturation, as a GPU does; NaN gives 0.
constexpr unsigned __float2uint_rz(float a) {
  return !(a > 0.0f) ? 0 : a >= 0x1p32f ? 0xffffffffu : static_cast<unsigned>(a);
}
constexpr float __int2float_rn(int a) { return static_cast<float>(a); }
constexpr float __uint2float_rn(unsigned a) { return static_cast<float>(a); }

constexpr int __popc(unsigned a) { return std::popcount(a); }
constexpr int __popcll(unsigned long long a) { return std::popcount(a); }
constexpr int __clz(int a) { return std::countl_zero(static_cast<unsigned>(a)); }
constexpr int __clzll(long long a) { return std::countl_zero(static_cast<unsigned long long>(a)); }
/// Returns one plus the index of the lowest set bit; 0 for 0.
constexpr int __ffs(int a) { return a == 0 ? 0 : std::countr_zero(static_cast<unsigned>(a)) + 1; }
constexpr int __ffsll(long long a) {
  return a == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(a)) + 1;
}
constexpr unsigned long long __brevll(unsigned long long a) {
  unsigned long long reversed = 0;
  for (int bit = 0; bit < 64; ++bit) reversed |= ((a >> bit) & 1) << (63 - bit);
  return reversed;
}
constexpr unsigned __brev(unsigned a) { return static_cast<unsigned>(__brevll(a) >> 32); }
constexpr unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
constexpr int __mulhi(int a, int b) {
  return static_cast<int>((static_cast<std::int64_t>(a) * b) >> 32);
}
/// Returns the high word of high:low shifted left by shift mod 32.
constexpr unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<std::uint64_t>(high) << 32 | low) << (shift & 31)) >>
                               32);
}
constexpr unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31));
}
/// Selects four bytes of b:a by the nibbles of the selector; if bit 3 of a nibble is set, the
/// byte's sign bit is replicated.
constexpr unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = (selector >> (4 * i)) & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (pick & 7))) & 0xff;
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

/// Loads through the read-only path, which is the ordinary path in the simulator.
template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, std::type_identity_t<T> value) {
  *address = value;
}

inline long long clock64() { return static_cast<long long>(__builtin_ia32_rdtsc()); }
inline long long clock() { return clock64(); }

}  // namespace rung::simt::dialect
