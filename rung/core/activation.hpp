// SPDX-License-Identifier: Apache-2.0
// Activation functions that operators apply to their results, and the reference implementation.
// Device code is in device/activate.hpp, CPU vector code in cpu/activate-inl.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>

#include "rung/core/language.hpp"

namespace rung {

/// Activation function. gelu is x Phi(x), computed by erfc. With the unit roundoff u, its relative
/// error in f64 is at most u (16 + x^2); gelu(-infinity) = 0. NaN stays NaN.
enum class Activation : std::uint8_t { none, relu, gelu, sigmoid, tanh };

/// Spelling of each activation in problems and on command lines.
inline constexpr std::pair<std::string_view, Activation> activation_names[] = {
    {"none", Activation::none},
    {"relu", Activation::relu},
    {"gelu", Activation::gelu},
    {"sigmoid", Activation::sigmoid},
    {"tanh", Activation::tanh}};

/// Computes an activation by its definition; oracles compare with it.
template <class Real>
Real reference_activation(Activation activation, Real x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? Real{0} : x;
    case Activation::gelu:
      if (x < -40) return 0;  // the limit; -infinity * 0 would be NaN
      return x * std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2;
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

}  // namespace rung
