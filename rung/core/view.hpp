// SPDX-License-Identifier: Apache-2.0
// View<T, N>: a non-owning pointer with shape and strides, small enough to pass to a kernel by
// value.
//
// Strides count elements, not bytes, and may be zero (broadcast) or in any order (transposed).
// It uses plain arrays because nvcc rejects std::array::operator[] in device code, and is always
// inlined because the simulated GPU instruments kernels: the linker would merge an out-of-line copy
// in a kernel with one in plain code.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/export.hpp"

namespace rung {

template <class T, int N>
struct View {
  T* data = nullptr;
  std::int64_t shape[N] = {};
  std::int64_t strides[N] = {};

  template <class... I>
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t offset(I... index) const {
    static_assert(sizeof...(I) == N, "one index an axis");
    const std::int64_t at[] = {static_cast<std::int64_t>(index)...};
    std::int64_t sum = 0;
    for (int axis = 0; axis < N; ++axis) sum += at[axis] * strides[axis];
    return sum;
  }

  template <class... I>
  RUNG_HD RUNG_ALWAYS_INLINE constexpr T& operator()(I... index) const {
    return data[offset(index...)];
  }

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr std::int64_t size() const {
    std::int64_t product = 1;
    for (int axis = 0; axis < N; ++axis) product *= shape[axis];
    return product;
  }

  /// Returns the sub-view at one index of the first axis.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE constexpr View<T, N - 1> at(std::int64_t index) const
    requires(N > 1)
  {
    View<T, N - 1> inner;
    inner.data = data + index * strides[0];
    for (int axis = 1; axis < N; ++axis) {
      inner.shape[axis - 1] = shape[axis];
      inner.strides[axis - 1] = strides[axis];
    }
    return inner;
  }

  /// Converts a writable view to a read-only one.
  template <class U>
    requires(std::is_same_v<U, const T> && !std::is_const_v<T>)
  RUNG_HD RUNG_ALWAYS_INLINE constexpr operator View<U, N>() const {
    View<U, N> same;
    same.data = data;
    for (int axis = 0; axis < N; ++axis) {
      same.shape[axis] = shape[axis];
      same.strides[axis] = strides[axis];
    }
    return same;
  }
};

}  // namespace rung
