// SPDX-License-Identifier: Apache-2.0
// Contiguity and alignment of the rows of q, k, v and tensors like them.
#pragma once

#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

/// Returns whether the elements of each row are adjacent.
inline bool has_contiguous_rows(const ConstTensorRef& heads) {
  return heads.strides[3] == 1 || heads.shape[3] <= 1;
}

/// Returns whether every row, whose elements are contiguous, starts at a multiple of `bytes`, so
/// that it can be copied in pieces of that size.
inline bool starts_rows_at(const ConstTensorRef& heads, std::int64_t bytes) {
  const auto element = static_cast<std::int64_t>(size_of(heads.dtype));
  for (int axis = 0; axis < 3; ++axis) {
    if (heads.shape[axis] > 1 && heads.strides[axis] * element % bytes != 0) return false;
  }
  return reinterpret_cast<std::uintptr_t>(heads.data) % static_cast<std::uintptr_t>(bytes) == 0;
}

}  // namespace rung
