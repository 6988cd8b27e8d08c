// SPDX-License-Identifier: Apache-2.0
// What the oracles of norm and norm_backward share: elements by their index, one at a time, as
// long doubles.
#pragma once

#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/ops/norm/op/axes.hpp"

namespace rung::norm_oracle {

// Sums of f64 need more digits than a double has; for the other types this is more than enough.
using Real = long double;

using Index = Extents;  // one number an axis

inline std::int64_t offset_of(const Index& index, const Extents& strides) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < strides.rank; ++axis) offset += index[axis] * strides[axis];
  return offset;
}

inline double element(const ConstTensorRef& tensor, const Index& index) {
  const auto at =
      offset_of(index, tensor.strides) * static_cast<std::int64_t>(size_of(tensor.dtype));
  return load_as_double(tensor.dtype, static_cast<const char*>(tensor.data) + at);
}

/// The index whose axes of the set hold element `linear` (C order) of those axes; others are kept.
inline void place(Index& index, std::int64_t linear, const Extents& shape, AxisSet set) {
  index.rank = shape.rank;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if (!norm_axes::holds(set, axis)) continue;
    index[axis] = linear % shape[axis];
    linear /= shape[axis];
  }
}

inline std::int64_t linear_of(const Index& index, const Extents& shape, AxisSet set) {
  std::int64_t linear = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (norm_axes::holds(set, axis)) linear = linear * shape[axis] + index[axis];
  }
  return linear;
}

/// The unit roundoff.
inline double unit(DType dtype) { return epsilon(dtype) / 2; }

/// The step to which results under the smallest normal number are rounded.
inline double smallest(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-133;
    case DType::f64:
      return 0x1p-1074;
    default:
      return 0x1p-149;
  }
}

}  // namespace rung::norm_oracle
