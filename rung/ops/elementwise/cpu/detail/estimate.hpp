// SPDX-License-Identifier: Apache-2.0
// elementwise: how long the vector kernels take, for the choice among the CPU rungs and of the
// number of threads. Figures of a 2-core Zen 5 vCPU, rounded: only the order matters.
#pragma once

#include <algorithm>

#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::elementwise_cpu {

/// Seconds of arithmetic an f32 element on one core.
inline double seconds_an_element(ElementwiseFunction function) {
  using enum ElementwiseFunction;
  switch (function) {
    case exp:
    case sigmoid:
    case tanh:
    case silu:
      return 0.12e-9;
    case gelu:
      return 0.3e-9;
    default:
      return 0.02e-9;
  }
}

/// One core, operands and result in a near cache or in memory.
inline double one_core_seconds(const Elementwise::Args& args) {
  const double bytes = Elementwise::cost(args).bytes;
  const double rate = bytes < 1 << 20 ? 150e9 : 40e9;
  const double strided = args.flat() ? 1.0 : 1.5;
  return 20e-9 + strided * std::max(bytes / rate, seconds_an_element(args.function) *
                                                      static_cast<double>(args.size()));
}

}  // namespace rung::elementwise_cpu
