// SPDX-License-Identifier: Apache-2.0
// activate(activation, x): activation functions for kernel epilogues.
#pragma once

#include <cmath>

#include "rung/core/activation.hpp"
#include "rung/device/device.hpp"
#include "rung/device/gelu.hpp"

namespace rung::inline RUNG_TARGET {

/// Returns activation(x). `Result` is the type to which the caller rounds the value: a 16-bit
/// `Result` selects a less accurate GELU.
template <class Result, class Real>
__device__ Real activate(Activation activation, Real x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? Real(0) : x;  // NaN stays NaN
    case Activation::gelu:
      if constexpr (sizeof(Real) == 8) {
        return gelu_f64(x);
      } else if constexpr (sizeof(Result) == 2) {
        return gelu_brief(x);
      } else {
        return gelu_f32(x);
      }
    case Activation::sigmoid:
      return Real(1) / (Real(1) + exp(-x));
    case Activation::tanh:
      return tanh(x);
  }
  return x;
}

}  // namespace rung::inline RUNG_TARGET
