// SPDX-License-Identifier: Apache-2.0
// A 16-bit float format and its vector of two. Included once for __half and once for __nv_bfloat16,
// with macros that define the names; hence without #pragma once.

struct RUNG_RAW {
  unsigned short x;
};
struct __attribute__((aligned(4))) RUNG_PAIR_RAW {
  unsigned short x, y;
};

struct RUNG_SCALAR {
  unsigned short rung_bits;

  RUNG_SCALAR() = default;
  constexpr RUNG_SCALAR(const RUNG_RAW& raw) : rung_bits(raw.x) {}
  RUNG_SCALAR(float x) : rung_bits(RUNG_FROM_FLOAT(x, rn)) {}
  RUNG_SCALAR(double x) : RUNG_SCALAR(static_cast<float>(x)) {}
  RUNG_SCALAR(int x) : RUNG_SCALAR(static_cast<float>(x)) {}
  RUNG_SCALAR(unsigned x) : RUNG_SCALAR(static_cast<float>(x)) {}
  RUNG_SCALAR(short x) : RUNG_SCALAR(static_cast<float>(x)) {}
  RUNG_SCALAR(unsigned short x) : RUNG_SCALAR(static_cast<float>(x)) {}
  RUNG_SCALAR(long x) : RUNG_SCALAR(static_cast<float>(x)) {}
  RUNG_SCALAR(unsigned long x) : RUNG_SCALAR(static_cast<float>(x)) {}
  RUNG_SCALAR(long long x) : RUNG_SCALAR(static_cast<float>(x)) {}
  RUNG_SCALAR(unsigned long long x) : RUNG_SCALAR(static_cast<float>(x)) {}
  operator float() const { return RUNG_TO_FLOAT(rung_bits); }
  operator RUNG_RAW() const { return {rung_bits}; }
  static RUNG_SCALAR rung_make(unsigned short bits) { return RUNG_SCALAR(RUNG_RAW{bits}); }

  template <class T>
  RUNG_SCALAR& operator+=(T x) {
    return *this = RUNG_SCALAR(float(*this) + float(RUNG_SCALAR(x)));
  }
  template <class T>
  RUNG_SCALAR& operator-=(T x) {
    return *this = RUNG_SCALAR(float(*this) - float(RUNG_SCALAR(x)));
  }
  template <class T>
  RUNG_SCALAR& operator*=(T x) {
    return *this = RUNG_SCALAR(float(*this) * float(RUNG_SCALAR(x)));
  }
  template <class T>
  RUNG_SCALAR& operator/=(T x) {
    return *this = RUNG_SCALAR(float(*this) / float(RUNG_SCALAR(x)));
  }
  RUNG_SCALAR& operator++() { return *this += 1.0f; }
  RUNG_SCALAR& operator--() { return *this -= 1.0f; }
};
struct __attribute__((aligned(4))) RUNG_PAIR {
  RUNG_SCALAR x, y;
  RUNG_PAIR() = default;
  RUNG_PAIR(RUNG_SCALAR a, RUNG_SCALAR b) : x(a), y(b) {}
  RUNG_PAIR(const RUNG_PAIR_RAW& raw)
      : x(RUNG_SCALAR::rung_make(raw.x)), y(RUNG_SCALAR::rung_make(raw.y)) {}
};

#define RUNG_S RUNG_SCALAR
#define RUNG_P RUNG_PAIR
inline RUNG_S operator+(RUNG_S a, RUNG_S b) { return float(a) + float(b); }
inline RUNG_S operator-(RUNG_S a, RUNG_S b) { return float(a) - float(b); }
inline RUNG_S operator*(RUNG_S a, RUNG_S b) { return float(a) * float(b); }
inline RUNG_S operator/(RUNG_S a, RUNG_S b) { return float(a) / float(b); }
inline RUNG_S operator-(RUNG_S a) {
  return RUNG_S::rung_make(static_cast<unsigned short>(a.rung_bits ^ 0x8000u));
}
inline RUNG_S operator+(RUNG_S a) { return a; }
inline bool operator==(RUNG_S a, RUNG_S b) { return float(a) == float(b); }
inline bool operator!=(RUNG_S a, RUNG_S b) { return float(a) != float(b); }
inline bool operator<(RUNG_S a, RUNG_S b) { return float(a) < float(b); }
inline bool operator>(RUNG_S a, RUNG_S b) { return float(a) > float(b); }
inline bool operator<=(RUNG_S a, RUNG_S b) { return float(a) <= float(b); }
inline bool operator>=(RUNG_S a, RUNG_S b) { return float(a) >= float(b); }

inline float RUNG_OUT_OF(2float)(RUNG_S a) { return a; }
#define RUNG_GLUE_(a, b) a##b
#define RUNG_GLUE(a, b) RUNG_GLUE_(a, b)
#define RUNG_ROUNDED(mode)                                                                   \
  inline RUNG_S RUNG_GLUE(RUNG_INTO(__float2), _##mode)(float a) {                           \
    return RUNG_S::rung_make(RUNG_FROM_FLOAT(a, mode));                                      \
  }                                                                                          \
  inline int RUNG_GLUE(RUNG_OUT_OF(2int_), mode)(RUNG_S a) { return __float2int_##mode(a); } \
  inline unsigned RUNG_GLUE(RUNG_OUT_OF(2uint_), mode)(RUNG_S a) {                           \
    return __float2uint_##mode(a);                                                           \
  }                                                                                          \
  inline short RUNG_GLUE(RUNG_OUT_OF(2short_), mode)(RUNG_S a) {                             \
    return static_cast<short>(__float2int_##mode(a));                                        \
  }                                                                                          \
  inline RUNG_S RUNG_GLUE(RUNG_INTO(__int2), _##mode)(int a) {                               \
    return RUNG_S::rung_make(RUNG_FROM_FLOAT(__int2float_##mode(a), mode));                  \
  }                                                                                          \
  inline RUNG_S RUNG_GLUE(RUNG_INTO(__uint2), _##mode)(unsigned a) {                         \
    return RUNG_S::rung_make(RUNG_FROM_FLOAT(__uint2float_##mode(a), mode));                 \
  }
RUNG_ROUNDED(rn)
RUNG_ROUNDED(rz)
RUNG_ROUNDED(ru)
RUNG_ROUNDED(rd)
#undef RUNG_ROUNDED
inline RUNG_S RUNG_AS_SCALAR(ushort)(unsigned short bits) { return RUNG_S::rung_make(bits); }
inline RUNG_S RUNG_AS_SCALAR(short)(short bits) {
  return RUNG_S::rung_make(static_cast<unsigned short>(bits));
}
inline unsigned short RUNG_SCALAR_AS(ushort)(RUNG_S a) { return a.rung_bits; }
inline short RUNG_SCALAR_AS(short)(RUNG_S a) { return static_cast<short>(a.rung_bits); }

// Functions on scalars and, with the suffix 2, on each element of a vector.
#define RUNG_BINARY(name, name2, expression) \
  inline RUNG_S name(RUNG_S p, RUNG_S q) {   \
    const float a = p, b = q;                \
    return expression;                       \
  }                                          \
  inline RUNG_P name2(RUNG_P p, RUNG_P q) { return {name(p.x, q.x), name(p.y, q.y)}; }
RUNG_BINARY(__hadd, __hadd2, a + b)
RUNG_BINARY(__hsub, __hsub2, a - b)
RUNG_BINARY(__hmul, __hmul2, a* b)
RUNG_BINARY(__hdiv, __h2div, a / b)
RUNG_BINARY(__hadd_rn, __hadd2_rn, a + b)
RUNG_BINARY(__hsub_rn, __hsub2_rn, a - b)
RUNG_BINARY(__hmul_rn, __hmul2_rn, a* b)
RUNG_BINARY(__hadd_sat, __hadd2_sat, __saturatef(a + b))
RUNG_BINARY(__hsub_sat, __hsub2_sat, __saturatef(a - b))
RUNG_BINARY(__hmul_sat, __hmul2_sat, __saturatef(a* b))
RUNG_BINARY(__hmax, __hmax2, fmaxf(a, b))
RUNG_BINARY(__hmin, __hmin2, fminf(a, b))
RUNG_BINARY(__hmax_nan, __hmax2_nan, a != a || b != b ? __builtin_nanf("") : fmaxf(a, b))
RUNG_BINARY(__hmin_nan, __hmin2_nan, a != a || b != b ? __builtin_nanf("") : fminf(a, b))
#undef RUNG_BINARY
inline RUNG_S __hfma(RUNG_S a, RUNG_S b, RUNG_S c) {
  // The product is exact in double; rounding the sum to odd avoids double rounding.
  const double exact = double(float(a)) * float(b) + float(c);
  float near = static_cast<float>(exact);
  if (double(near) != exact && (__float_as_uint(near) & 1) == 0) {
    near = nextafterf(near, exact > near ? __builtin_inff() : -__builtin_inff());
  }
  return near;
}
inline RUNG_P __hfma2(RUNG_P a, RUNG_P b, RUNG_P c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline RUNG_S __hfma_sat(RUNG_S a, RUNG_S b, RUNG_S c) { return __saturatef(__hfma(a, b, c)); }
inline RUNG_S __hfma_relu(RUNG_S a, RUNG_S b, RUNG_S c) { return fmaxf(__hfma(a, b, c), 0.0f); }
inline RUNG_P __hfma2_relu(RUNG_P a, RUNG_P b, RUNG_P c) {
  return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)};
}

#define RUNG_UNARY(name, name2, expression) \
  inline RUNG_S name(RUNG_S p) {            \
    const float a = p;                      \
    return expression;                      \
  }                                         \
  inline RUNG_P name2(RUNG_P p) { return {name(p.x), name(p.y)}; }
RUNG_UNARY(hexp, h2exp, expf(a))
RUNG_UNARY(hexp2, h2exp2, exp2f(a))
RUNG_UNARY(hexp10, h2exp10, exp10f(a))
RUNG_UNARY(hlog, h2log, logf(a))
RUNG_UNARY(hlog2, h2log2, log2f(a))
RUNG_UNARY(hlog10, h2log10, log10f(a))
RUNG_UNARY(hsin, h2sin, sinf(a))
RUNG_UNARY(hcos, h2cos, cosf(a))
RUNG_UNARY(htanh, h2tanh, tanhf(a))
RUNG_UNARY(hsqrt, h2sqrt, sqrtf(a))
RUNG_UNARY(hrsqrt, h2rsqrt, rsqrtf(a))
RUNG_UNARY(hrcp, h2rcp, 1 / a)
RUNG_UNARY(hceil, h2ceil, ceilf(a))
RUNG_UNARY(hfloor, h2floor, floorf(a))
RUNG_UNARY(hrint, h2rint, rintf(a))
RUNG_UNARY(htrunc, h2trunc, truncf(a))
RUNG_UNARY(__habs, __habs2, fabsf(a))
RUNG_UNARY(__hneg, __hneg2, -a)
#undef RUNG_UNARY

// Comparisons of vectors, with a single result, two numbers, or two masks. Variants with u are true
// for NaN.
#define RUNG_COMPARE(word, expression)                                                             \
  inline bool __h##word(RUNG_S p, RUNG_S q) {                                                      \
    const float a = p, b = q;                                                                      \
    return expression;                                                                             \
  }                                                                                                \
  inline bool __h##word##u(RUNG_S p, RUNG_S q) {                                                   \
    const float a = p, b = q;                                                                      \
    return a != a || b != b || (expression);                                                       \
  }                                                                                                \
  inline bool __hb##word##2(RUNG_P p, RUNG_P q) {                                                  \
    return __h##word(p.x, q.x) && __h##word(p.y, q.y);                                             \
  }                                                                                                \
  inline RUNG_P __h##word##2(RUNG_P p, RUNG_P q) {                                                 \
    return {RUNG_S(__h##word(p.x, q.x) ? 1.0f : 0.0f), RUNG_S(__h##word(p.y, q.y) ? 1.0f : 0.0f)}; \
  }                                                                                                \
  inline unsigned __h##word##2_mask(RUNG_P p, RUNG_P q) {                                          \
    return (__h##word(p.x, q.x) ? 0xffffu : 0u) | (__h##word(p.y, q.y) ? 0xffff0000u : 0u);        \
  }
RUNG_COMPARE(eq, a == b)
RUNG_COMPARE(ne, a != b && a == a && b == b)
RUNG_COMPARE(lt, a < b)
RUNG_COMPARE(le, a <= b)
RUNG_COMPARE(gt, a > b)
RUNG_COMPARE(ge, a >= b)
#undef RUNG_COMPARE
inline bool __hisnan(RUNG_S a) { return float(a) != float(a); }
inline int __hisinf(RUNG_S a) { return __builtin_isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }

inline RUNG_P operator+(RUNG_P a, RUNG_P b) { return __hadd2(a, b); }
inline RUNG_P operator-(RUNG_P a, RUNG_P b) { return __hsub2(a, b); }
inline RUNG_P operator*(RUNG_P a, RUNG_P b) { return __hmul2(a, b); }
inline RUNG_P operator/(RUNG_P a, RUNG_P b) { return __h2div(a, b); }
inline RUNG_P operator-(RUNG_P a) { return __hneg2(a); }
inline RUNG_P& operator+=(RUNG_P& a, RUNG_P b) { return a = a + b; }
inline RUNG_P& operator-=(RUNG_P& a, RUNG_P b) { return a = a - b; }
inline RUNG_P& operator*=(RUNG_P& a, RUNG_P b) { return a = a * b; }
inline bool operator==(RUNG_P a, RUNG_P b) { return __hbeq2(a, b); }
inline bool operator!=(RUNG_P a, RUNG_P b) { return __hbne2(a, b); }
inline RUNG_S __low2half(RUNG_P a) { return a.x; }
inline RUNG_S __high2half(RUNG_P a) { return a.y; }
inline RUNG_S __low2bfloat16(RUNG_P a) { return a.x; }
inline RUNG_S __high2bfloat16(RUNG_P a) { return a.y; }
inline RUNG_P __low2half2(RUNG_P a) { return {a.x, a.x}; }
inline RUNG_P __high2half2(RUNG_P a) { return {a.y, a.y}; }
inline RUNG_P __lows2half2(RUNG_P a, RUNG_P b) { return {a.x, b.x}; }
inline RUNG_P __highs2half2(RUNG_P a, RUNG_P b) { return {a.y, b.y}; }
inline RUNG_P __lowhigh2highlow(RUNG_P a) { return {a.y, a.x}; }

#ifndef RUNG_HOST_RUNTIME
inline RUNG_S atomicAdd(RUNG_S* address, RUNG_S value) {
  return rung::cuda::atomic_change_bits<unsigned short>(address,
                                                        [=](RUNG_S x) { return x + value; });
}
inline RUNG_P atomicAdd(RUNG_P* address, RUNG_P value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
#endif

#undef RUNG_GLUE
#undef RUNG_GLUE_
#undef RUNG_S
#undef RUNG_P
#undef RUNG_SCALAR
#undef RUNG_PAIR
#undef RUNG_RAW
#undef RUNG_PAIR_RAW
#undef RUNG_FROM_FLOAT
#undef RUNG_TO_FLOAT
#undef RUNG_INTO
#undef RUNG_INTO2
#undef RUNG_OUT_OF
#undef RUNG_SCALAR_AS
#undef RUNG_AS_SCALAR
