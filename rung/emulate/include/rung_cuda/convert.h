// SPDX-License-Identifier: Apache-2.0
// Arithmetic and conversions with explicit rounding: rn to nearest even, rz toward zero, ru up, rd
// down.
#pragma once

#include <fenv.h>
#include <math.h>

namespace rung::cuda {

enum Rounding { rn = FE_TONEAREST, rz = FE_TOWARDZERO, ru = FE_UPWARD, rd = FE_DOWNWARD };

/// Calls f in the given rounding mode. Volatile operands in f prevent the compiler from moving or
/// contracting the computation.
template <Rounding rounding, class Operation>
inline auto rounded(Operation f) {
  if constexpr (rounding == rn) {
    return f();
  } else {
    const int before = fegetround();
    fesetround(rounding);
    const auto result = f();
    fesetround(before);
    return result;
  }
}
template <Rounding rounding, class T>
inline T whole(T x) {
  if constexpr (rounding == rn) return nearbyint(x);
  if constexpr (rounding == rz) return trunc(x);
  if constexpr (rounding == ru) return ceil(x);
  return floor(x);
}
/// Converts a floating-point number with an integral value to an integer type, with saturation. NaN
/// gives 0; for 64-bit types, the value with only the sign bit set.
template <class To, class From>
inline To clamped(From x) {
  constexpr bool is_signed = To(-1) < To(0);
  constexpr int bits = 8 * sizeof(To) - (is_signed ? 1 : 0);
  constexpr To high = static_cast<To>(is_signed ? ~(To(1) << (8 * sizeof(To) - 1)) : ~To(0));
  constexpr To low = static_cast<To>(is_signed ? To(1) << (8 * sizeof(To) - 1) : To(0));
  if (x != x) return sizeof(To) == 8 ? static_cast<To>(To(1) << 63) : To(0);
  if (x >= ldexp(From(1), bits)) return high;
  if (x < static_cast<From>(low)) return low;
  return static_cast<To>(x);
}

}  // namespace rung::cuda

#define RUNG_BINARY(name, type, operation, mode)          \
  inline type name##_##mode(type x, type y) {             \
    return rung::cuda::rounded<rung::cuda::mode>([x, y] { \
      volatile type a = x, b = y;                         \
      volatile type result = a operation b;               \
      return static_cast<type>(result);                   \
    });                                                   \
  }
#define RUNG_UNARY(name, type, expression, mode)       \
  inline type name##_##mode(type x) {                  \
    return rung::cuda::rounded<rung::cuda::mode>([x] { \
      volatile type a = x;                             \
      volatile type result = expression;               \
      return static_cast<type>(result);                \
    });                                                \
  }
#define RUNG_FMA(name, type, function, mode)                 \
  inline type name##_##mode(type x, type y, type z) {        \
    return rung::cuda::rounded<rung::cuda::mode>([x, y, z] { \
      volatile type a = x, b = y, c = z;                     \
      volatile type result = function(a, b, c);              \
      return static_cast<type>(result);                      \
    });                                                      \
  }
#define RUNG_ALL_ROUNDINGS(macro, ...) \
  macro(__VA_ARGS__, rn) macro(__VA_ARGS__, rz) macro(__VA_ARGS__, ru) macro(__VA_ARGS__, rd)
RUNG_ALL_ROUNDINGS(RUNG_BINARY, __fadd, float, +)
RUNG_ALL_ROUNDINGS(RUNG_BINARY, __fsub, float, -)
RUNG_ALL_ROUNDINGS(RUNG_BINARY, __fmul, float, *)
RUNG_ALL_ROUNDINGS(RUNG_BINARY, __fdiv, float, /)
RUNG_ALL_ROUNDINGS(RUNG_BINARY, __dadd, double, +)
RUNG_ALL_ROUNDINGS(RUNG_BINARY, __dsub, double, -)
RUNG_ALL_ROUNDINGS(RUNG_BINARY, __dmul, double, *)
RUNG_ALL_ROUNDINGS(RUNG_BINARY, __ddiv, double, /)
RUNG_ALL_ROUNDINGS(RUNG_UNARY, __fsqrt, float, sqrtf(a))
RUNG_ALL_ROUNDINGS(RUNG_UNARY, __frcp, float, 1 / a)
RUNG_ALL_ROUNDINGS(RUNG_UNARY, __dsqrt, double, sqrt(a))
RUNG_ALL_ROUNDINGS(RUNG_UNARY, __drcp, double, 1 / a)
RUNG_ALL_ROUNDINGS(RUNG_FMA, __fmaf, float, fmaf)
RUNG_ALL_ROUNDINGS(RUNG_FMA, __fma, double, fma)
#undef RUNG_BINARY
#undef RUNG_UNARY
#undef RUNG_FMA
inline float __frsqrt_rn(float x) { return static_cast<float>(1 / sqrt(static_cast<double>(x))); }

// Conversions between floats and integers.
#define RUNG_TO_INTEGER(name, from, to, mode)                               \
  inline to name##_##mode(from x) {                                         \
    return rung::cuda::clamped<to>(rung::cuda::whole<rung::cuda::mode>(x)); \
  }
RUNG_ALL_ROUNDINGS(RUNG_TO_INTEGER, __float2int, float, int)
RUNG_ALL_ROUNDINGS(RUNG_TO_INTEGER, __float2uint, float, unsigned)
RUNG_ALL_ROUNDINGS(RUNG_TO_INTEGER, __float2ll, float, long long)
RUNG_ALL_ROUNDINGS(RUNG_TO_INTEGER, __float2ull, float, unsigned long long)
RUNG_ALL_ROUNDINGS(RUNG_TO_INTEGER, __double2int, double, int)
RUNG_ALL_ROUNDINGS(RUNG_TO_INTEGER, __double2uint, double, unsigned)
RUNG_ALL_ROUNDINGS(RUNG_TO_INTEGER, __double2ll, double, long long)
RUNG_ALL_ROUNDINGS(RUNG_TO_INTEGER, __double2ull, double, unsigned long long)
#undef RUNG_TO_INTEGER
#define RUNG_CONVERT(name, from, to, mode)             \
  inline to name##_##mode(from x) {                    \
    return rung::cuda::rounded<rung::cuda::mode>([x] { \
      volatile from a = x;                             \
      volatile to result = static_cast<to>(a);         \
      return static_cast<to>(result);                  \
    });                                                \
  }
RUNG_ALL_ROUNDINGS(RUNG_CONVERT, __double2float, double, float)
RUNG_ALL_ROUNDINGS(RUNG_CONVERT, __int2float, int, float)
RUNG_ALL_ROUNDINGS(RUNG_CONVERT, __uint2float, unsigned, float)
RUNG_ALL_ROUNDINGS(RUNG_CONVERT, __ll2float, long long, float)
RUNG_ALL_ROUNDINGS(RUNG_CONVERT, __ull2float, unsigned long long, float)
RUNG_ALL_ROUNDINGS(RUNG_CONVERT, __ll2double, long long, double)
RUNG_ALL_ROUNDINGS(RUNG_CONVERT, __ull2double, unsigned long long, double)
#undef RUNG_CONVERT
#undef RUNG_ALL_ROUNDINGS
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
