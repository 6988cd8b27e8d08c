// SPDX-License-Identifier: Apache-2.0
// Gradients of the functions, one element at a time, for hosts and devices.
#pragma once

#include <cmath>
#include <type_traits>

#include "rung/core/export.hpp"
#include "rung/ops/activation_backward/op/activation_backward.hpp"

namespace rung::activation_slopes {

/// Tail of the normal distribution: Phi(-u) e^(u^2 / 2) = t P(t) with t = 1 / (1 + 0.3 u), for u up
/// to 14, where the tail of an f32 underflows. P is interpolated at Chebyshev nodes, with a
/// relative error of 4.4e-9 (cpu/math-inl.hpp).
struct Tail {
  static constexpr int degree = 9;
  static constexpr float bound = 14;
  /// Returns the coefficient of the i-th power in P.
  static RUNG_HD constexpr float coefficient(int i) {
    constexpr float p[] = {0.119687693145F,  0.119551763229F,   0.110405179847F, 0.0775890643774F,
                           0.0984807401835F, -0.0837425490162F, 0.196940677017F, -0.232038482936F,
                           0.114040272074F,  -0.0209143597288F};
    return p[i];
  }
};
inline constexpr double density_at_0 = 0.39894228040143267794;  // 1 / sqrt(2 pi)

/// Returns f'(x) of gelu in f32: for x < 0 the tail minus |x| phi, which share an exponential; for
/// x >= 0, 1 - f'(-x). `exponential` computes e^z.
template <class E>
RUNG_HD RUNG_ALWAYS_INLINE inline float gelu_slope(float x, const E& exponential) {
  if (std::isnan(x)) return x;
  const float distance = x < 0 ? -x : x;
  const float u = distance < Tail::bound ? distance : Tail::bound;
  const float t = 1 / (1 + 0.3F * u);
  float sum = Tail::coefficient(Tail::degree);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = Tail::degree - 1; i >= 0; --i) sum = sum * t + Tail::coefficient(i);
  const float power = exponential(-0.5F * u * u);
  const float slope = power * (t * sum - u * static_cast<float>(density_at_0));
  if (distance > Tail::bound) return x < 0 ? 0.0F : 1.0F;
  return x < 0 ? slope : 1 - slope;
}
/// Returns f'(x) of gelu in f64, by erfc: 1 + erf would cancel for x < 0.
template <class E>
RUNG_HD RUNG_ALWAYS_INLINE inline double gelu_slope(double x, const E& exponential) {
  if (x > 40) return 1;
  if (x < -40) return 0;
  return 0.5 * ::erfc(x * -0.70710678118654752440) + x * density_at_0 * exponential(-0.5 * x * x);
}

/// Returns f'(x) of silu: s (1 + x (1 - s)). e^-|x| cannot overflow, and e^x / (1 + e^x) keeps the
/// digits of small s.
template <class T, class E>
RUNG_HD RUNG_ALWAYS_INLINE inline T silu_slope(T x, const E& exponential) {
  constexpr T bound = sizeof(T) == 4 ? T(100) : T(745);  // beyond, s is 0 or 1
  if (x > bound) return 1;
  if (x < -bound) return 0;
  const T e = exponential(x < 0 ? x : -x);
  const T inverse = 1 / (1 + e);
  const T s = x < 0 ? e * inverse : inverse;
  const T rest = x < 0 ? inverse : e * inverse;  // 1 - s, computed without a subtraction
  return s + x * s * rest;
}

/// Returns dx for an element of saved and dy.
template <class T, class E>
RUNG_HD RUNG_ALWAYS_INLINE inline T gradient(ActivationFunction function, T saved, T dy,
                                             const E& exponential) {
  using enum ActivationFunction;
  switch (function) {
    case sign:
      return saved >= -1 && saved <= 1 ? dy : std::isnan(saved) ? saved : T(0);
    case relu:
      return saved > 0 ? dy : std::isnan(saved) ? saved : T(0);
    case sigmoid:
      return dy * (saved * (1 - saved));
    case tanh:
      return dy * ((1 - saved) * (1 + saved));
    case gelu:
      return dy * gelu_slope(saved, exponential);
    case silu:
      return dy * silu_slope(saved, exponential);
  }
  return dy;
}

}  // namespace rung::activation_slopes
