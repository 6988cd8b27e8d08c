// SPDX-License-Identifier: Apache-2.0
// elementwise: gelu of one f64, exact to a few units in the last place.
#pragma once

#include <cmath>

#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::elementwise_cpu {

/// x Phi(x) = x erfc(-x / sqrt(2)) / 2; through erf it would cancel for x < 0.
inline double gelu_f64(double x) {
  if (x < -40) return 0;  // as the limit; -infinity * 0 would be NaN
  constexpr double factor = 0.70710678118654752440;
  constexpr double factor_rest = -4.833646656726457e-17;  // 1 / sqrt(2) - factor
  const double a = -x * factor;
  const double phi = std::erfc(a) / 2;
  if (!(a > 1)) return x * phi;
  // erfc falls as e^(-a^2): a relative error of a is multiplied by 2 a^2. What the product lost
  // is known exactly, and erfc(a + lost) = erfc(a) (1 - 2 a lost) nearly.
  const double lost = std::fma(-x, factor, -a) - x * factor_rest;
  return x * std::fma(phi, -2 * a * lost, phi);
}

}  // namespace rung::elementwise_cpu
