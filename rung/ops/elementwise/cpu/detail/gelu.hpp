// SPDX-License-Identifier: Apache-2.0
// elementwise: gelu of an f64, within a few ulp.
#pragma once

#include <cmath>

#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::elementwise_cpu {

/// Returns x Phi(x) = x erfc(-x / sqrt(2)) / 2; erf would cancel for x < 0.
inline double gelu_f64(double x) {
  if (x < -40) return 0;  // the limit; -infinity * 0 would be NaN
  constexpr double factor = 0.70710678118654752440;
  constexpr double factor_rest = -4.833646656726457e-17;  // 1 / sqrt(2) - factor
  const double a = -x * factor;
  const double phi = std::erfc(a) / 2;
  if (!(a > 1)) return x * phi;
  // erfc decays as e^(-a^2): a relative error of a is multiplied by 2 a^2. The product's rounding
  // error is known exactly, and erfc(a + lost) is nearly erfc(a) (1 - 2 a lost).
  const double lost = std::fma(-x, factor, -a) - x * factor_rest;
  return x * std::fma(phi, -2 * a * lost, phi);
}

}  // namespace rung::elementwise_cpu
