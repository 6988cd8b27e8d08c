// SPDX-License-Identifier: Apache-2.0
// The functions as a program would write them for std::transform.
#pragma once

#include <cmath>

#include "rung/ops/elementwise/peers/modules/module.hpp"

namespace rung::peer_elementwise {

/// Calls unary(f) with a function of x, or binary(f) with a function of x and y.
template <class T, class Unary, class Binary>
void with_lambda(ElementwiseFunction function, T alpha, Unary unary, Binary binary) {
  using enum ElementwiseFunction;
  switch (function) {
    case add:
      return binary([](T x, T y) { return x + y; });
    case sub:
      return binary([](T x, T y) { return x - y; });
    case mul:
      return binary([](T x, T y) { return x * y; });
    case div:
      return binary([](T x, T y) { return x / y; });
    case axpy:
      return binary([alpha](T x, T y) { return alpha * x + y; });
    case relu:
      return unary([](T x) { return x < 0 ? T{0} : x; });
    case sigmoid:
      return unary([](T x) { return 1 / (1 + std::exp(-x)); });
    case tanh:
      return unary([](T x) { return std::tanh(x); });
    case gelu:
      return unary([](T x) { return x * std::erfc(x * T(-0.70710678118654752440)) / 2; });
    case exp:
      return unary([](T x) { return std::exp(x); });
    case silu:
      return unary([](T x) { return x / (1 + std::exp(-x)); });
    case sign:
      return unary([](T x) { return x > 0 ? T{1} : x < 0 ? T{-1} : x; });
    case fma:
      return;
  }
}

}  // namespace rung::peer_elementwise
