// SPDX-License-Identifier: Apache-2.0
// Normalized axes, tensors spread over them, and checks of epsilon; shared by norm and
// norm_backward.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include "rung/core/collapse.hpp"
#include "rung/core/require.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung::norm_axes {

/// Returns the set of `axes` axes from `axis` on; rejects axes that x does not have.
inline AxisSet chosen(std::string_view op, int axis, int axes, int rank) {
  if (rank < 1) reject(op, "x has no axes; accepted: 1 to 8");
  const int first = require_axis(op, axis, rank);
  if (axes < 1 || axes > rank - first) {
    reject(op, "axes is " + std::to_string(axes) + "; accepted: 1 to " +
                   std::to_string(rank - first) + " from axis " + std::to_string(first) + " of " +
                   std::to_string(rank) + " on");
  }
  return ((AxisSet{1} << axes) - 1) << first;
}

/// Returns whether epsilon is finite and nonnegative in the arithmetic type; an infinite one would
/// make every result beta.
inline bool epsilon_fits(double epsilon, DType arithmetic) {
  const double used = arithmetic == DType::f64 ? epsilon : static_cast<float>(epsilon);
  return epsilon >= 0 && std::isfinite(used);
}

inline bool holds(AxisSet set, int axis) { return (set >> axis & 1) != 0; }

/// Returns the entries of `extents` whose axes are in the set.
inline Extents part(const Extents& extents, AxisSet set) {
  Extents result;
  for (int axis = 0; axis < extents.rank; ++axis) {
    if (holds(set, axis)) result.at[result.rank++] = extents[axis];
  }
  return result;
}

/// Returns the tensor reduced to its axes in the set.
template <class Void>
BasicTensorRef<Void> restricted(const BasicTensorRef<Void>& tensor, AxisSet set) {
  return {tensor.data, tensor.dtype, part(tensor.shape, set), part(tensor.strides, set),
          tensor.device};
}

/// Spreads a tensor, whose axes are those in the set, over `shape` with stride 0 along other axes.
/// Absent tensors are unchanged.
template <class Void>
void spread(std::string_view op, BasicTensorRef<Void>& tensor, std::string_view name,
            const Extents& shape, AxisSet set) {
  if (!is_given(tensor)) return;
  require_shape(op, tensor, name, part(shape, set));
  Extents strides = shape;
  for (int axis = 0, from = 0; axis < shape.rank; ++axis) {
    strides[axis] = holds(set, axis) ? tensor.strides[from++] : 0;
  }
  tensor.shape = shape;
  tensor.strides = strides;
}

/// Does the same for a tensor that may also have an extent of 1 for each axis outside the set.
template <class Void>
void spread_keeping_ones(std::string_view op, BasicTensorRef<Void>& tensor, std::string_view name,
                         const Extents& shape, AxisSet set) {
  Extents ones = shape;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (!holds(set, axis)) ones[axis] = 1;
  }
  const Extents accepted = part(shape, set);
  if (is_given(tensor) && !(tensor.shape == accepted)) {
    if (!(tensor.shape == ones)) {
      reject(op, std::string(name) + " is " + to_string(tensor.shape) +
                     "; accepted: " + to_string(accepted) + " or " + to_string(ones));
    }
    tensor = restricted(tensor, set);
  }
  spread(op, tensor, name, shape, set);
}

}  // namespace rung::norm_axes
