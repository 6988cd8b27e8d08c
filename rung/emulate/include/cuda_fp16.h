// SPDX-License-Identifier: Apache-2.0
// Half precision: __half, __half2 and their functions. Each operation is computed in float and
// rounded once to nearest even, which gives the hardware's result; fused operations are computed in
// double.
#pragma once

#include "cuda_runtime.h"
#include "rung_cuda/small_float_bits.h"

#define RUNG_SCALAR __half
#define RUNG_PAIR __half2
#define RUNG_RAW __half_raw
#define RUNG_PAIR_RAW __half2_raw
#define RUNG_FROM_FLOAT(x, rounding) rung::cuda::to_half_bits(x, rung::cuda::rounding)
#define RUNG_TO_FLOAT(bits) rung::cuda::from_half_bits(bits)
#define RUNG_INTO(name) name##half
#define RUNG_INTO2(name) name##half2
#define RUNG_OUT_OF(name) __half##name
#define RUNG_SCALAR_AS(name) __half_as_##name
#define RUNG_AS_SCALAR(name) __##name##_as_half
#include "rung_cuda/small_float.h"

typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;

inline __half __float2half(float x) { return __float2half_rn(x); }
inline __half __double2half(double x) { return __float2half_rn(static_cast<float>(x)); }
inline __half2 __float2half2_rn(float x) { return {__float2half_rn(x), __float2half_rn(x)}; }
inline __half2 __floats2half2_rn(float x, float y) {
  return {__float2half_rn(x), __float2half_rn(y)};
}
inline __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
inline float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
inline float __low2float(__half2 v) { return __half2float(v.x); }
inline float __high2float(__half2 v) { return __half2float(v.y); }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
#define CUDART_INF_FP16 __ushort_as_half(0x7c00u)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fffu)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00u)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000u)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bffu)
