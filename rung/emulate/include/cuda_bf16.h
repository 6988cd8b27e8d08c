// SPDX-License-Identifier: Apache-2.0
// bfloat16: __nv_bfloat16, __nv_bfloat162 and their functions, computed as in cuda_fp16.h.
#pragma once

#include "cuda_fp16.h"

#define RUNG_SCALAR __nv_bfloat16
#define RUNG_PAIR __nv_bfloat162
#define RUNG_RAW __nv_bfloat16_raw
#define RUNG_PAIR_RAW __nv_bfloat162_raw
#define RUNG_FROM_FLOAT(x, rounding) rung::cuda::to_bfloat_bits(x, rung::cuda::rounding)
#define RUNG_TO_FLOAT(bits) rung::cuda::from_bfloat_bits(bits)
#define RUNG_INTO(name) name##bfloat16
#define RUNG_INTO2(name) name##bfloat162
#define RUNG_OUT_OF(name) __bfloat16##name
#define RUNG_SCALAR_AS(name) __bfloat16_as_##name
#define RUNG_AS_SCALAR(name) __##name##_as_bfloat16
#include "rung_cuda/small_float.h"

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

inline __nv_bfloat16 __float2bfloat16(float x) { return __float2bfloat16_rn(x); }
inline __nv_bfloat16 __double2bfloat16(double x) {
  return __float2bfloat16_rn(static_cast<float>(x));
}
inline __nv_bfloat162 __float2bfloat162_rn(float x) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(x)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
inline float2 __bfloat1622float2(__nv_bfloat162 v) {
  return {__bfloat162float(v.x), __bfloat162float(v.y)};
}
inline float __low2float(__nv_bfloat162 v) { return __bfloat162float(v.x); }
inline float __high2float(__nv_bfloat162 v) { return __bfloat162float(v.y); }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
