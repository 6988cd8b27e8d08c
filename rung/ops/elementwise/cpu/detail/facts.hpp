// SPDX-License-Identifier: Apache-2.0
// elementwise: operation counts of the vector kernels, for the choice of CPU rung and thread count.
#pragma once

#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::elementwise_cpu {

/// Returns the approximate vector operations per element.
inline double operations_per_element(ElementwiseFunction function) {
  using enum ElementwiseFunction;
  switch (function) {
    case exp:
    case sigmoid:
    case tanh:
    case silu:
      return 6;
    case gelu:
      return 15;
    default:
      return 1;
  }
}

inline double operations_of(const Elementwise::Args& args) {
  return operations_per_element(args.function) * static_cast<double>(args.size());
}

}  // namespace rung::elementwise_cpu
