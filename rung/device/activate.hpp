// SPDX-License-Identifier: Apache-2.0
// activate(activation, x): the last step of kernels whose results pass through a function.
#pragma once

#include <cmath>

#include "rung/core/activation.hpp"
#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET {

template <class Real>
__device__ Real activate(Activation activation, Real x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? Real(0) : x;  // NaN stays NaN
    case Activation::gelu:
      if (x < -40) return 0;  // under any type's range; -infinity * 0 would be NaN
      return x * erfc(-x * Real(0.70710678118654752440)) * Real(0.5);
    case Activation::sigmoid:
      return Real(1) / (Real(1) + exp(-x));
    case Activation::tanh:
      return tanh(x);
  }
  return x;
}

}  // namespace rung::inline RUNG_TARGET
