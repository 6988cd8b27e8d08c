// SPDX-License-Identifier: Apache-2.0
// 8-bit floats: __nv_fp8_e4m3 and __nv_fp8_e5m2, scalar and in vectors of two and four. They are
// storage types: arithmetic uses wider types, as on a GPU.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace rung::cuda {

/// Rounds to nearest even. Overflow gives the largest finite value if `saturate`, else infinity, or
/// NaN if the format has no infinity.
inline unsigned char to_fp8_bits(double value, bool saturate, __nv_fp8_interpretation_t kind) {
  const bool e4m3 = kind == __NV_E4M3;
  const int places = e4m3 ? 3 : 2, least = e4m3 ? -6 : -14;
  const double greatest = e4m3 ? 448 : 57344;
  if (value != value) return 0x7f;
  const unsigned sign = __builtin_signbit(value) ? 0x80 : 0;
  const double magnitude = __builtin_fabs(value);
  const double in_range = magnitude < 2 * greatest ? magnitude : 2 * greatest;
  int exponent = least;
  while (exponent < 16 && in_range >= __builtin_ldexp(1.0, exponent + 1)) ++exponent;
  const double units = __builtin_rint(__builtin_ldexp(in_range, places - exponent));
  if (__builtin_ldexp(units, exponent - places) > greatest) {
    const unsigned last = e4m3 ? 0x7e : 0x7b;
    return static_cast<unsigned char>(sign | (saturate ? last : last + 1));
  }
  // The implicit leading one increments the exponent field; without it the number is subnormal.
  const auto bits =
      static_cast<unsigned>(units) + (static_cast<unsigned>(exponent - least) << places);
  return static_cast<unsigned char>(sign | bits);
}
inline float from_fp8_bits(unsigned char bits, __nv_fp8_interpretation_t kind) {
  if (kind == __NV_E5M2) return from_half_bits(static_cast<unsigned short>(bits << 8));
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float value = __builtin_ldexpf(static_cast<float>(exponent == 0 ? mantissa : 8 + mantissa),
                                 (exponent == 0 ? 1 : exponent) - 10);
  if ((bits & 0x7f) == 0x7f) value = __builtin_nanf("");
  return (bits & 0x80) != 0 ? -value : value;
}

}  // namespace rung::cuda

inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturation,
                                                 __nv_fp8_interpretation_t kind) {
  return rung::cuda::to_fp8_bits(x, saturation == __NV_SATFINITE, kind);
}
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturation,
                                                __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(x, saturation, kind);
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturation,
                                                  __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(__half(x), saturation, kind);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x,
                                                      __nv_saturation_t saturation,
                                                      __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(__nv_bfloat16(x), saturation, kind);
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturation,
                                                     __nv_fp8_interpretation_t kind) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_float_to_fp8(x.x, saturation, kind) |
                                           __nv_cvt_float_to_fp8(x.y, saturation, kind) << 8);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  return __half(rung::cuda::from_fp8_bits(x, kind));
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x,
                                              __nv_fp8_interpretation_t kind) {
  return {__nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(x), kind).x,
          __nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(x >> 8), kind).x};
}

namespace rung::cuda {

template <__nv_fp8_interpretation_t kind>
struct Fp8 {
  __nv_fp8_storage_t __x;
  Fp8() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  explicit Fp8(T x) : __x(to_fp8_bits(static_cast<double>(x), true, kind)) {}
  explicit Fp8(__half x) : Fp8(float(x)) {}
  explicit Fp8(__nv_bfloat16 x) : Fp8(float(x)) {}
  explicit operator float() const { return from_fp8_bits(__x, kind); }
  explicit operator __half() const { return __half(float(*this)); }
  explicit operator __nv_bfloat16() const { return __nv_bfloat16(float(*this)); }
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, float>)
  explicit operator T() const {
    return static_cast<T>(float(*this));
  }
};
template <__nv_fp8_interpretation_t kind>
struct Fp8x2 {
  __nv_fp8x2_storage_t __x;
  Fp8x2() = default;
  explicit Fp8x2(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, kind)) {}
  explicit Fp8x2(double2 v)
      : Fp8x2(make_float2(static_cast<float>(v.x), static_cast<float>(v.y))) {}
  explicit Fp8x2(__half2 v) : Fp8x2(make_float2(float(v.x), float(v.y))) {}
  explicit operator float2() const {
    return make_float2(from_fp8_bits(static_cast<unsigned char>(__x), kind),
                       from_fp8_bits(static_cast<unsigned char>(__x >> 8), kind));
  }
  explicit operator __half2() const { return {__half(float2(*this).x), __half(float2(*this).y)}; }
};
template <__nv_fp8_interpretation_t kind>
struct Fp8x4 {
  __nv_fp8x4_storage_t __x;
  Fp8x4() = default;
  explicit Fp8x4(float4 v)
      : __x(Fp8x2<kind>(make_float2(v.x, v.y)).__x |
            static_cast<unsigned>(Fp8x2<kind>(make_float2(v.z, v.w)).__x) << 16) {}
  explicit operator float4() const {
    Fp8x2<kind> low, high;
    low.__x = static_cast<unsigned short>(__x);
    high.__x = static_cast<unsigned short>(__x >> 16);
    return make_float4(float2(low).x, float2(low).y, float2(high).x, float2(high).y);
  }
};

}  // namespace rung::cuda

typedef rung::cuda::Fp8<__NV_E4M3> __nv_fp8_e4m3;
typedef rung::cuda::Fp8<__NV_E5M2> __nv_fp8_e5m2;
typedef rung::cuda::Fp8x2<__NV_E4M3> __nv_fp8x2_e4m3;
typedef rung::cuda::Fp8x2<__NV_E5M2> __nv_fp8x2_e5m2;
typedef rung::cuda::Fp8x4<__NV_E4M3> __nv_fp8x4_e4m3;
typedef rung::cuda::Fp8x4<__NV_E5M2> __nv_fp8x4_e5m2;
