// SPDX-License-Identifier: Apache-2.0
// Rows<N>: N tensors of one shape, viewed as rows along one axis, for operators along an axis
// (softmax, norm). The other axes are collapsed and number the rows. The order of rows does not
// matter, so the axis with the smallest stride comes last: adjacent rows are then adjacent in
// memory as often as possible.
//
//   const Rows<2> rows = rows_along<2>(x.shape, {x.strides, y.strides}, axis);
//   for (row < rows.count())
//     for (i < rows.length) y[rows.offset<1>(row) + i * rows.steps[1]] = ...
//
// Kernels take Rows by value; device/rows.hpp has the device code.
#pragma once

#include <array>
#include <cstdint>

#include "rung/core/collapse.hpp"
#include "rung/core/export.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

template <int N>
struct Rows {
  Collapsed<N> others;         // the axes other than that of the rows, collapsed
  std::int64_t length = 0;     // elements per row
  std::int64_t steps[N] = {};  // stride along a row, per tensor

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t count() const { return others.size(); }
  /// Returns the offset of row `row` of tensor I, in elements from the tensor's first.
  template <int I = 0>
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t offset(std::int64_t row) const {
    return others.template offset<I>(row);
  }
  /// Computes the offsets in all tensors in one pass over the axes.
  RUNG_HD RUNG_ALWAYS_INLINE void offsets(std::int64_t row, std::int64_t (&at)[N]) const {
    others.offsets(row, at);
  }

  /// Returns whether the rows of every tensor are contiguous.
  [[nodiscard]] bool are_contiguous() const {
    for (int tensor = 0; tensor < N; ++tensor) {
      if (steps[tensor] != 1 && length > 1) return false;
    }
    return true;
  }
  /// Returns whether adjacent rows are one element apart in every tensor, so that vectors may span
  /// rows: true for any axis but the last of a contiguous tensor.
  [[nodiscard]] bool are_adjacent() const {
    for (int tensor = 0; tensor < N; ++tensor) {
      if (others.rank == 0 || others.strides[tensor][others.rank - 1] != 1) return false;
    }
    return true;
  }
  /// Returns the number of consecutive rows that are_adjacent() refers to.
  [[nodiscard]] std::int64_t run() const {
    return others.rank == 0 ? 1 : others.shape[others.rank - 1];
  }
};

template <int N>
Rows<N> rows_along(const Extents& shape, const std::array<Extents, N>& strides, int axis) {
  Rows<N> rows;
  rows.others = collapse<N>(shape, strides, all_axes & ~(AxisSet{1} << axis), AxisOrder::by_stride);
  rows.length = shape[axis];
  for (int tensor = 0; tensor < N; ++tensor) {
    rows.steps[tensor] = strides[static_cast<std::size_t>(tensor)][axis];
  }
  return rows;
}

}  // namespace rung
