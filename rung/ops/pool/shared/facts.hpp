// SPDX-License-Identifier: Apache-2.0
// Facts of CUDA rungs of pool and pool_backward: few of them are bound by memory. What a window
// costs is index arithmetic, so instructions that an SM must issue, and loads that wait for one
// another.
#pragma once

#include "rung/core/operator.hpp"
#include "rung/ops/pool/shared/window.hpp"

namespace rung {

/// Returns the work of a kernel in blocks of 256 threads. Types with different arithmetic are paths
/// of their own.
inline Work pool_facts(Amount blocks, Amount rounds, Amount steps, DType type,
                       std::string_view path = "") {
  return {.blocks = blocks,
          .resident = 8,
          .rounds = rounds,
          .steps = steps,
          .path = type == DType::f64 ? "f64" : path};
}

/// Windows over an element of x along an axis, on average; dilated or not.
inline double windows_over_one(const PoolAxis& axis) {
  return static_cast<double>(axis.kernel) / static_cast<double>(axis.stride);
}

}  // namespace rung
