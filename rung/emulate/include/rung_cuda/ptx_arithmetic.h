// SPDX-License-Identifier: Apache-2.0
// PTX arithmetic: integers, floats, packed 16-bit floats, bits, conversions.
#pragma once

#include "rung_cuda/ptx_types.h"

namespace rung::ptx {

/// Unsigned integer type of 32 or 64 bits that is at least as wide as T; its arithmetic wraps.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;

template <class T>
inline T same(T a) {
  return a;
}
#define RUNG_FIELDWISE(name, operation)                                                    \
  template <class T>                                                                       \
  inline T name(T a, T b) {                                                                \
    if constexpr (is_pair<T>) {                                                            \
      return {float(a.low) operation float(b.low), float(a.high) operation float(b.high)}; \
    } else if constexpr (std::is_integral_v<T>) {                                          \
      return static_cast<T>(static_cast<Bits<T>>(a) operation static_cast<Bits<T>>(b));    \
    } else {                                                                               \
      return a operation b;                                                                \
    }                                                                                      \
  }
RUNG_FIELDWISE(add, +)
RUNG_FIELDWISE(sub, -)
RUNG_FIELDWISE(mul, *)
#undef RUNG_FIELDWISE
#define RUNG_EXTREME(name, integer, function)                                                \
  template <class T>                                                                         \
  inline T name(T a, T b) {                                                                  \
    if constexpr (is_pair<T>) {                                                              \
      return {function(float(a.low), float(b.low)), function(float(a.high), float(b.high))}; \
    } else if constexpr (std::is_integral_v<T>) {                                            \
      return a integer b ? a : b;                                                            \
    } else {                                                                                 \
      return function(a, b);                                                                 \
    }                                                                                        \
  }
RUNG_EXTREME(min, <, fmin)
RUNG_EXTREME(max, >, fmax)
#undef RUNG_EXTREME

template <class T>
inline T saturated(T x) {
  return x > 0 ? (x < 1 ? x : T(1)) : T(0);
}
template <class T>
inline T add_saturated(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return cuda::clamped<T>(static_cast<double>(a) + static_cast<double>(b));
  } else {
    return saturated<T>(a + b);
  }
}
template <class T>
inline Wide<T> mul_wide(T a, T b) {
  return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
}
template <class T>
inline T mul_hi(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using Product = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>(static_cast<Product>(a) * static_cast<Product>(b) >> 64);
  } else {
    return static_cast<T>(mul_wide(a, b) >> (8 * sizeof(T)));
  }
}
template <class T>
inline T mul24(T a, T b) {
  if constexpr (std::is_signed_v<T>) return __mul24(a, b);
  return __umul24(a, b);
}
template <class T>
inline T mad(T a, T b, T c) {
  return add<T>(mul<T>(a, b), c);
}
template <class T>
inline T mad_hi(T a, T b, T c) {
  return add<T>(mul_hi(a, b), c);
}
template <class T>
inline Wide<T> mad_wide(T a, T b, Wide<T> c) {
  return add<Wide<T>>(mul_wide(a, b), c);
}
template <class T>
inline T fused(T a, T b, T c) {
  if constexpr (is_pair<T>) {
    return {fused(a.low, b.low, c.low), fused(a.high, b.high, c.high)};
  } else if constexpr (is_small<T>) {
    return static_cast<float>(double(float(a)) * float(b) + float(c));
  } else {
    return fma(a, b, c);
  }
}
template <class T>
inline T fma_saturated(T a, T b, T c) {
  return saturated<T>(fused(a, b, c));
}
template <class T>
inline T fma_relu(T a, T b, T c) {
  const T sum = fused(a, b, c);
  return max<T>(sum, T{});
}
template <class T>
inline T div(T a, T b) {
  return b == 0 && std::is_integral_v<T> ? static_cast<T>(-1) : static_cast<T>(a / b);
}
template <class T>
inline T rem(T a, T b) {
  return b == 0 ? a : static_cast<T>(a % b);
}
template <class T>
inline T neg(T a) {
  if constexpr (is_pair<T>) {
    return {-float(a.low), -float(a.high)};
  } else if constexpr (std::is_integral_v<T>) {
    return sub<T>(0, a);
  } else {
    return -a;
  }
}
template <class T>
inline T abs(T a) {
  if constexpr (is_pair<T>)
    return {fabsf(a.low), fabsf(a.high)};
  else
    return a < T{} ? neg<T>(a) : a;
}
template <class T>
inline T sad(T a, T b, T c) {
  return add<T>(c, a > b ? sub<T>(a, b) : sub<T>(b, a));
}

// Addition and subtraction with carry.
template <class T>
inline T sum_with_carry(T a, T b, unsigned carry, unsigned& out) {
  const auto wide = static_cast<unsigned __int128>(static_cast<Bits<T>>(a)) +
                    static_cast<Bits<T>>(b) + (carry & 1);
  out = static_cast<unsigned>(wide >> (8 * sizeof(T))) & 1;
  return static_cast<T>(wide);
}
template <class T>
inline T difference_with_borrow(T a, T b, unsigned borrow, unsigned& out) {
  const auto wide = static_cast<unsigned __int128>(static_cast<Bits<T>>(a)) -
                    static_cast<Bits<T>>(b) - (borrow & 1);
  out = static_cast<unsigned>(wide >> (8 * sizeof(T))) & 1;
  return static_cast<T>(wide);
}
template <class T>
inline T add_carry_out(T a, T b, unsigned& carry) {
  return sum_with_carry(a, b, 0, carry);
}
template <class T>
inline T add_carry_both(T a, T b, unsigned& carry) {
  return sum_with_carry(a, b, carry, carry);
}
template <class T>
inline T add_carry_in(T a, T b, unsigned carry) {
  return sum_with_carry(a, b, carry, carry);
}
template <class T>
inline T sub_carry_out(T a, T b, unsigned& borrow) {
  return difference_with_borrow(a, b, 0, borrow);
}
template <class T>
inline T sub_carry_both(T a, T b, unsigned& borrow) {
  return difference_with_borrow(a, b, borrow, borrow);
}
template <class T>
inline T sub_carry_in(T a, T b, unsigned borrow) {
  return difference_with_borrow(a, b, borrow, borrow);
}
#define RUNG_MAD_CARRY(half, product)                                \
  template <class T>                                                 \
  inline T mad_##half##_carry_out(T a, T b, T c, unsigned& carry) {  \
    return sum_with_carry<T>(product, c, 0, carry);                  \
  }                                                                  \
  template <class T>                                                 \
  inline T mad_##half##_carry_both(T a, T b, T c, unsigned& carry) { \
    return sum_with_carry<T>(product, c, carry, carry);              \
  }                                                                  \
  template <class T>                                                 \
  inline T mad_##half##_carry_in(T a, T b, T c, unsigned carry) {    \
    return sum_with_carry<T>(product, c, carry, carry);              \
  }
RUNG_MAD_CARRY(lo, mul<T>(a, b))
RUNG_MAD_CARRY(hi, mul_hi<T>(a, b))
#undef RUNG_MAD_CARRY

#define RUNG_FUNCTION(name, expression)   \
  template <class T>                      \
  inline T name(T a) {                    \
    if constexpr (is_pair<T>)             \
      return {name(a.low), name(a.high)}; \
    else                                  \
      return expression;                  \
  }
RUNG_FUNCTION(ex2, static_cast<T>(exp2f(static_cast<float>(a))))
RUNG_FUNCTION(lg2, static_cast<T>(log2f(static_cast<float>(a))))
RUNG_FUNCTION(rcp, static_cast<T>(1 / a))
RUNG_FUNCTION(rsqrt, static_cast<T>(1 / ::sqrt(static_cast<double>(a))))
RUNG_FUNCTION(sqrt, static_cast<T>(::sqrt(a)))
RUNG_FUNCTION(sin, static_cast<T>(::sin(a)))
RUNG_FUNCTION(cos, static_cast<T>(::cos(a)))
RUNG_FUNCTION(tanh, static_cast<T>(tanhf(static_cast<float>(a))))
#undef RUNG_FUNCTION
template <class T>
inline T copysign(T a, T b) {
  return ::copysign(b, a);
}

// Comparisons. Variants with the suffix u are true for NaN.
#define RUNG_COMPARE(name, operation)         \
  template <class T>                          \
  inline bool compare_##name(T a, T b) {      \
    return a operation b;                     \
  }                                           \
  template <class T>                          \
  inline bool compare_##name##u(T a, T b) {   \
    return a != a || b != b || a operation b; \
  }
RUNG_COMPARE(eq, ==)
RUNG_COMPARE(ne, !=)
RUNG_COMPARE(lt, <)
RUNG_COMPARE(le, <=)
RUNG_COMPARE(gt, >)
RUNG_COMPARE(ge, >=)
#undef RUNG_COMPARE
#define RUNG_COMPARE(name, operation)                                 \
  template <class T>                                                  \
  inline bool compare_##name(T a, T b) {                              \
    return static_cast<Bits<T>>(a) operation static_cast<Bits<T>>(b); \
  }
RUNG_COMPARE(lo, <)
RUNG_COMPARE(ls, <=)
RUNG_COMPARE(hi, >)
RUNG_COMPARE(hs, >=)
#undef RUNG_COMPARE
template <class T>
inline bool compare_num(T a, T b) {
  return a == a && b == b;
}
template <class T>
inline bool compare_nan(T a, T b) {
  return a != a || b != b;
}
template <class T>
inline T truth(bool yes) {
  if constexpr (std::is_floating_point_v<T>)
    return yes ? 1 : 0;
  else
    return static_cast<T>(yes ? ~T(0) : T(0));
}

}  // namespace rung::ptx

#include "rung_cuda/ptx_bits.h"
#include "rung_cuda/ptx_convert.h"
