// SPDX-License-Identifier: Apache-2.0
// Which axes are normalised, tensors spread over them, and epsilon: what norm and norm_backward
// share.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include "rung/core/collapse.hpp"
#include "rung/core/require.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung::norm_axes {

/// `axes` axes from `axis` on, as a set.
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

/// In the type it is added in, where a larger one would be an infinity and every result beta.
inline bool epsilon_fits(double epsilon, DType arithmetic) {
  const double used = arithmetic == DType::f64 ? epsilon : static_cast<float>(epsilon);
  return epsilon >= 0 && std::isfinite(used);
}

inline bool holds(AxisSet set, int axis) { return (set >> axis & 1) != 0; }

/// Those of `extents` whose axis is in the set.
inline Extents part(const Extents& extents, AxisSet set) {
  Extents result;
  for (int axis = 0; axis < extents.rank; ++axis) {
    if (holds(set, axis)) result.at[result.rank++] = extents[axis];
  }
  return result;
}

/// The tensor that spread() was given, but for axes of extent 1.
template <class Void>
BasicTensorRef<Void> restricted(const BasicTensorRef<Void>& tensor, AxisSet set) {
  return {tensor.data, tensor.dtype, part(tensor.shape, set), part(tensor.strides, set),
          tensor.device};
}

/// A tensor whose axes are those of the set (`keeps_ones`: or all of them, with 1 for the others),
/// spread over `shape` by stride 0. One that is left out stays as it is.
template <class Void>
BasicTensorRef<Void> spread(std::string_view op, const BasicTensorRef<Void>& tensor,
                            std::string_view name, const Extents& shape, AxisSet set,
                            bool keeps_ones = false) {
  if (!is_given(tensor)) return tensor;
  require_tensor(op, tensor, name);
  BasicTensorRef<Void> result = tensor;
  result.shape = shape;
  result.strides = shape;
  const bool full = keeps_ones && tensor.rank() == shape.rank;
  Extents ones = shape;
  int from = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const bool own = holds(set, axis);
    if (!own) ones[axis] = 1;
    result.strides[axis] = own && from < tensor.rank() ? tensor.strides[from] : 0;
    from += own || full ? 1 : 0;
  }
  const Extents accepted = part(shape, set);
  if (!(tensor.shape == (full ? ones : accepted))) {
    reject(op, std::string(name) + " is " + to_string(tensor.shape) + "; accepted: " +
                   to_string(accepted) + (keeps_ones ? " or " + to_string(ones) : ""));
  }
  if constexpr (!std::is_const_v<Void>) require_writable(op, tensor, name);
  return result;
}

}  // namespace rung::norm_axes
