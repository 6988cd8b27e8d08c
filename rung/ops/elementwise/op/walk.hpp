// SPDX-License-Identifier: Apache-2.0
// Walk<N>: a position in the collapsed axes of N tensors, advanced along rows without division.
#pragma once

#include <cstdint>

#include "rung/core/collapse.hpp"

namespace rung::elementwise_cpu {

template <int N>
class Walk {
 public:
  Walk(const Collapsed<N>& layout, std::int64_t linear) : layout_(&layout) {
    std::int64_t rest = linear;
    for (int axis = layout.rank - 1; axis >= 0; --axis) {
      index_[axis] = axis == 0 ? rest : rest % layout.shape[axis];
      rest /= layout.shape[axis];
      for (int tensor = 0; tensor < N; ++tensor) {
        at[tensor] += index_[axis] * layout.strides[tensor][axis];
      }
    }
  }

  [[nodiscard]] std::int64_t left_in_row() const {
    const int last = layout_->rank - 1;
    return last < 0 ? 1 : layout_->shape[last] - index_[last];
  }
  /// Returns the number of whole rows, a constant stride apart, that remain along the axis before
  /// the last.
  [[nodiscard]] std::int64_t rows_left() const {
    const int axis = layout_->rank - 2;
    return axis < 0 ? 1 : layout_->shape[axis] - index_[axis];
  }
  /// Advances by `count` elements, no more than are left in the row.
  void advance(std::int64_t count) { advance(layout_->rank - 1, count); }
  /// Advances from the start of a row by `count` rows, no more than rows_left().
  void advance_rows(std::int64_t count) { advance(layout_->rank - 2, count); }

  std::int64_t at[N] = {};  // offsets in elements

 private:
  void advance(int axis, std::int64_t count) {
    for (; axis >= 0; --axis) {
      move(axis, count);
      if (index_[axis] < layout_->shape[axis] || axis == 0) return;
      move(axis, -layout_->shape[axis]);
      count = 1;
    }
  }

  void move(int axis, std::int64_t count) {
    index_[axis] += count;
    for (int tensor = 0; tensor < N; ++tensor) {
      at[tensor] += count * layout_->strides[tensor][axis];
    }
  }

  const Collapsed<N>* layout_;
  std::int64_t index_[max_rank] = {};
};

}  // namespace rung::elementwise_cpu
