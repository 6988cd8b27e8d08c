// SPDX-License-Identifier: Apache-2.0
// What transpose's tests share.
#pragma once

#include "rung/ops/transpose/op/transpose.hpp"

namespace rung {

/// y's shape for an x of `shape`.
inline Extents permuted(const Extents& shape, const Extents& order) {
  Extents result = shape;
  for (int axis = 0; axis < shape.rank; ++axis) result[axis] = shape[static_cast<int>(order[axis])];
  return result;
}

}  // namespace rung
