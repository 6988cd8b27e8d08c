// SPDX-License-Identifier: Apache-2.0
// Helpers of transpose's tests.
#pragma once

#include "rung/ops/transpose/op/transpose.hpp"

namespace rung {

/// Returns y's shape for an x of `shape`.
inline Extents permuted(const Extents& shape, const Extents& order) {
  Extents result = shape;
  for (int axis = 0; axis < shape.rank; ++axis) result[axis] = shape[static_cast<int>(order[axis])];
  return result;
}

}  // namespace rung
