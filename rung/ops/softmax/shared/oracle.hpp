// SPDX-License-Identifier: Apache-2.0
// Shared by the oracles of softmax and its gradient: element loads in extended precision, sums
// computed once per row, and the loop over checked elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "rung/core/rounding.hpp"
#include "rung/harness/inputs.hpp"

namespace rung::softmax_oracle {

/// Precision of the reference; double is not enough to verify f64.
using Real = long double;

constexpr DType arithmetic_of(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }
constexpr double smallest_normal(DType arithmetic) {
  return arithmetic == DType::f64 ? 0x1p-1022 : 0x1p-126;
}
/// Returns the scale as kernels receive it, rounded to the arithmetic type.
inline Real scale_in(DType arithmetic, double scale) {
  return arithmetic == DType::f64 ? scale : nearest_f32(scale);
}

inline Real load(const ConstTensorRef& tensor, const Extents& at) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < at.rank; ++axis) offset += at[axis] * tensor.strides[axis];
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  return load_as_double(tensor.dtype, static_cast<const std::byte*>(tensor.data) + offset * bytes);
}

/// Cache of per-row sums for rows along `axis`.
template <class Sums>
class RowCache {
 public:
  RowCache(const Extents& shape, int axis) : shape_(shape), axis_(axis) {}
  /// Returns the sums of an element's row. A row's first use calls compute(sums, at), which
  /// iterates over at[axis].
  template <class Compute>
  const Sums& of(Extents at, Compute&& compute) {
    at[axis_] = 0;
    std::int64_t key = 0;
    for (int axis = 0; axis < at.rank; ++axis) key = key * shape_[axis] + at[axis];
    const auto [found, is_new] = sums_.try_emplace(key);
    if (is_new) compute(found->second, at);
    return found->second;
  }

 private:
  Extents shape_;
  int axis_;
  std::unordered_map<std::int64_t, Sums> sums_;
};

/// Calls element(at, value, magnitude) for each element of the output that is checked.
template <class Element>
void for_judged(Oracle::Output& output, const Extents& shape, Element&& element) {
  std::size_t judged = 0;
  for (const std::int64_t row : output.rows) {
    Extents at = shape;
    std::int64_t rest = row;
    for (int axis = shape.rank - 2; axis >= 0; --axis) {
      at[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    std::int64_t& column = at[shape.rank - 1];
    for (column = 0; column < output.length; ++column, ++judged) {
      element(at, output.value[judged], output.magnitude[judged]);
    }
  }
}

}  // namespace rung::softmax_oracle
