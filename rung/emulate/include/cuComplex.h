// SPDX-License-Identifier: Apache-2.0
// Complex numbers as pairs of floats or doubles, and functions on them.
#pragma once

#include "cuda_runtime.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define RUNG_COMPLEX(Complex, Real, Suffix, make)                                          \
  __host__ __device__ inline Real cuCreal##Suffix(Complex z) { return z.x; }               \
  __host__ __device__ inline Real cuCimag##Suffix(Complex z) { return z.y; }               \
  __host__ __device__ inline Complex cuConj##Suffix(Complex z) { return make(z.x, -z.y); } \
  __host__ __device__ inline Complex cuCadd##Suffix(Complex a, Complex b) {                \
    return make(a.x + b.x, a.y + b.y);                                                     \
  }                                                                                        \
  __host__ __device__ inline Complex cuCsub##Suffix(Complex a, Complex b) {                \
    return make(a.x - b.x, a.y - b.y);                                                     \
  }                                                                                        \
  __host__ __device__ inline Complex cuCmul##Suffix(Complex a, Complex b) {                \
    return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                             \
  }                                                                                        \
  /* Scaled, so that no square overflows. */                                               \
  __host__ __device__ inline Complex cuCdiv##Suffix(Complex a, Complex b) {                \
    const Real scale = Real{1} / (fabs(b.x) + fabs(b.y));                                  \
    const Complex p = make(a.x * scale, a.y * scale);                                      \
    const Complex q = make(b.x * scale, b.y * scale);                                      \
    const Real inverse = Real{1} / (q.x * q.x + q.y * q.y);                                \
    return make((p.x * q.x + p.y * q.y) * inverse, (p.y * q.x - p.x * q.y) * inverse);     \
  }                                                                                        \
  __host__ __device__ inline Real cuCabs##Suffix(Complex z) { return hypot(z.x, z.y); }    \
  __host__ __device__ inline Complex cuCfma##Suffix(Complex a, Complex b, Complex c) {     \
    return cuCadd##Suffix(cuCmul##Suffix(a, b), c);                                        \
  }

RUNG_COMPLEX(cuFloatComplex, float, f, make_float2)
RUNG_COMPLEX(cuDoubleComplex, double, , make_double2)
#undef RUNG_COMPLEX

__host__ __device__ inline cuFloatComplex make_cuFloatComplex(float real, float imaginary) {
  return make_float2(real, imaginary);
}
__host__ __device__ inline cuDoubleComplex make_cuDoubleComplex(double real, double imaginary) {
  return make_double2(real, imaginary);
}
__host__ __device__ inline cuComplex make_cuComplex(float real, float imaginary) {
  return make_float2(real, imaginary);
}
__host__ __device__ inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) {
  return make_double2(z.x, z.y);
}
__host__ __device__ inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
  return make_float2(static_cast<float>(z.x), static_cast<float>(z.y));
}
