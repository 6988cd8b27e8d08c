// SPDX-License-Identifier: Apache-2.0
// Floating-point functions that the C library lacks: minimum and maximum of mixed types, CUDA's own
// functions, and fast approximations. Functions that are approximate on a GPU have the accuracy of
// the C library in the simulator, so programs must not rely on their last bits, neither on a GPU
// nor in the simulator.
#pragma once

#include <math.h>

// Macros, since the C library declares functions of these names for its own use.
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __sincosf(x, s, c) sincosf(x, s, c)
#define __tanhf(x) tanhf(x)
#define __fdividef(x, y) ((x) / (y))
#define fdividef(x, y) ((x) / (y))

#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_MAX_NORMAL_F 3.402823466e38f
#define CUDART_MIN_DENORM_F 1.401298464e-45f
#define CUDART_ONE_F 1.0f
#define CUDART_ZERO_F 0.0f
#define CUDART_SQRT_TWO_F 1.414213562f
#define CUDART_LN2_F 0.693147181f
#define CUDART_L2E_F 1.442695041f

// Functions instead of templates, as in CUDA, so that a program's templates of these names are
// overloads.
#define RUNG_EXTREMES(result, a, b)                                                  \
  constexpr result min(a x, b y) {                                                   \
    return static_cast<result>(x) < static_cast<result>(y) ? static_cast<result>(x)  \
                                                           : static_cast<result>(y); \
  }                                                                                  \
  constexpr result max(a x, b y) {                                                   \
    return static_cast<result>(x) > static_cast<result>(y) ? static_cast<result>(x)  \
                                                           : static_cast<result>(y); \
  }
RUNG_EXTREMES(int, int, int)
RUNG_EXTREMES(unsigned, unsigned, unsigned)
RUNG_EXTREMES(unsigned, int, unsigned)
RUNG_EXTREMES(unsigned, unsigned, int)
RUNG_EXTREMES(long, long, long)
RUNG_EXTREMES(unsigned long, unsigned long, unsigned long)
RUNG_EXTREMES(unsigned long, long, unsigned long)
RUNG_EXTREMES(unsigned long, unsigned long, long)
RUNG_EXTREMES(long long, long long, long long)
RUNG_EXTREMES(unsigned long long, unsigned long long, unsigned long long)
RUNG_EXTREMES(unsigned long long, long long, unsigned long long)
RUNG_EXTREMES(unsigned long long, unsigned long long, long long)
#undef RUNG_EXTREMES
// If one operand is NaN, return the other, as on a GPU.
#define RUNG_EXTREMES(result, a, b)                                                            \
  inline result min(a x, b y) { return fmin(static_cast<result>(x), static_cast<result>(y)); } \
  inline result max(a x, b y) { return fmax(static_cast<result>(x), static_cast<result>(y)); }
RUNG_EXTREMES(float, float, float)
RUNG_EXTREMES(double, double, double)
RUNG_EXTREMES(double, float, double)
RUNG_EXTREMES(double, double, float)
#undef RUNG_EXTREMES
constexpr unsigned umin(unsigned x, unsigned y) { return min(x, y); }
constexpr unsigned umax(unsigned x, unsigned y) { return max(x, y); }
constexpr long long llmin(long long x, long long y) { return min(x, y); }
constexpr long long llmax(long long x, long long y) { return max(x, y); }
constexpr unsigned long long ullmin(unsigned long long x, unsigned long long y) {
  return min(x, y);
}
constexpr unsigned long long ullmax(unsigned long long x, unsigned long long y) {
  return max(x, y);
}

inline float rsqrtf(float x) { return static_cast<float>(1 / sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return static_cast<float>(1 / cbrt(static_cast<double>(x))); }
inline double rcbrt(double x) { return 1 / cbrt(x); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

namespace rung::cuda {
/// Computes sin(pi x) without the rounding error of pi x: x is first reduced to one period.
inline double sine_of_pi(double x) {
  const double y = remainder(x, 2.0);
  if (y == floor(y)) return copysign(0.0, x);
  return sin(y * 3.14159265358979323846);
}
inline double cosine_of_pi(double x) {
  const double y = fabs(remainder(x, 2.0));
  if (y == 0.5) return 0;
  return cos(y * 3.14159265358979323846);
}
double inverse_normal(double probability);
}  // namespace rung::cuda
inline double sinpi(double x) { return rung::cuda::sine_of_pi(x); }
inline double cospi(double x) { return rung::cuda::cosine_of_pi(x); }
inline float sinpif(float x) { return static_cast<float>(rung::cuda::sine_of_pi(x)); }
inline float cospif(float x) { return static_cast<float>(rung::cuda::cosine_of_pi(x)); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
inline float normcdff(float x) { return static_cast<float>(normcdf(static_cast<double>(x))); }
inline double normcdfinv(double p) { return rung::cuda::inverse_normal(p); }
inline float normcdfinvf(float p) { return static_cast<float>(normcdfinv(p)); }
inline double erfinv(double x) {
  return rung::cuda::inverse_normal((x + 1) / 2) * 0.70710678118654752440;
}
inline float erfinvf(float x) { return static_cast<float>(erfinv(x)); }
inline double erfcinv(double x) { return erfinv(1 - x); }
inline float erfcinvf(float x) { return static_cast<float>(erfcinv(x)); }
/// Modified Bessel functions of the first kind. The C++ library has them only for x >= 0; order 0
/// is even, order 1 odd.
#if __cplusplus >= 201703L
inline double cyl_bessel_i0(double x) { return std::cyl_bessel_i(0.0, x < 0 ? -x : x); }
inline double cyl_bessel_i1(double x) {
  return x < 0 ? -std::cyl_bessel_i(1.0, -x) : std::cyl_bessel_i(1.0, x);
}
inline float cyl_bessel_i0f(float x) { return static_cast<float>(cyl_bessel_i0(x)); }
inline float cyl_bessel_i1f(float x) { return static_cast<float>(cyl_bessel_i1(x)); }
#endif
inline double erfcx(double x) { return exp(x * x) * erfc(x); }
inline float erfcxf(float x) { return static_cast<float>(erfcx(static_cast<double>(x))); }
inline double rhypot(double x, double y) { return 1 / hypot(x, y); }
inline float rhypotf(float x, float y) { return 1 / hypotf(x, y); }
inline double norm3d(double x, double y, double z) { return hypot(hypot(x, y), z); }
inline float norm3df(float x, float y, float z) { return hypotf(hypotf(x, y), z); }
inline double norm4d(double x, double y, double z, double w) {
  return hypot(hypot(x, y), hypot(z, w));
}
inline float norm4df(float x, float y, float z, float w) {
  return hypotf(hypotf(x, y), hypotf(z, w));
}
inline double rnorm3d(double x, double y, double z) { return 1 / norm3d(x, y, z); }
inline float rnorm3df(float x, float y, float z) { return 1 / norm3df(x, y, z); }

// Conversions between floats and their bit patterns.
constexpr int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
constexpr unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
constexpr float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
constexpr float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
constexpr long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
constexpr double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
constexpr int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
constexpr int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
constexpr double __hiloint2double(int high, int low) {
  return __longlong_as_double(
      static_cast<long long>(static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 |
                             static_cast<unsigned>(low)));
}
