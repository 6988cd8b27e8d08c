// SPDX-License-Identifier: Apache-2.0
// Small random shapes and strides, and iteration over all indices of a shape: for brute force.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "rung/core/tensor.hpp"

namespace rung::test {

/// Calls visit with the index of every element, in C order.
template <class Visit>
void for_each_index(const Extents& shape, const Visit& visit) {
  Extents index = shape;
  std::fill_n(index.at, index.rank, 0);
  for (std::int64_t left = shape.product(); left > 0; --left) {
    visit(index);
    for (int axis = shape.rank - 1; axis >= 0 && ++index[axis] == shape[axis]; --axis) {
      index[axis] = 0;
    }
  }
}

inline std::int64_t offset_of(const Extents& index, const Extents& strides) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < index.rank; ++axis) offset += index[axis] * strides[axis];
  return offset;
}

inline Extents random_extents(std::mt19937& random, int rank, int low, int high) {
  Extents extents;
  extents.rank = rank;
  for (int axis = 0; axis < rank; ++axis) {
    extents[axis] = std::uniform_int_distribution(low, high)(random);
  }
  return extents;
}

}  // namespace rung::test
