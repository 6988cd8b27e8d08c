// SPDX-License-Identifier: Apache-2.0
//
// Copies of strided elements and matrices, converted to or from the arithmetic type. Accesses no
// other elements.
//
//   copy_strided(to, from, step, count)     to[i] = from[i step]
//   store_strided(from, to, step, count)    to[i step] = from[i]
//   copy_matrix(from, row, column, rows, columns, to, pitch)
//                                           to[i pitch + j] = from[i row + j column]
//
// Cost     vector loads and stores if the step is 1; a matrix with contiguous columns is
//          transposed, four columns by one vector of rows at a time; otherwise element by element.
#if defined(RUNG_CPU_STRIDED_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_STRIDED_INL_HPP_
#undef RUNG_CPU_STRIDED_INL_HPP_
#else
#define RUNG_CPU_STRIDED_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rung/cpu/load-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, class In>
HWY_INLINE void copy_strided(T* to, const In* from, std::int64_t step, int count) {
  if (step != 1) {
    for (int i = 0; i < count; ++i) to[i] = static_cast<T>(from[i * step]);
    return;
  }
  const hn::ScalableTag<T> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  int i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(load_as(d, from + i), d, to + i);
  if (i >= count) return;
  const auto rest = static_cast<std::size_t>(count - i);
  store_as_n(load_as_n(d, from + i, rest), d, to + i, rest);
}

template <class T, class Out>
HWY_INLINE void store_strided(const T* from, Out* to, std::int64_t step, int count) {
  if (step != 1) {
    for (int i = 0; i < count; ++i) to[i * step] = static_cast<Out>(from[i]);
    return;
  }
  const hn::ScalableTag<T> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  int i = 0;
  for (; i + lanes <= count; i += lanes) store_as(hn::LoadU(d, from + i), d, to + i);
  if (i >= count) return;
  const auto rest = static_cast<std::size_t>(count - i);
  store_as_n(load_as_n(d, from + i, rest), d, to + i, rest);
}

/// Transposes four contiguous columns, `column` apart, of any number of rows.
template <class T, class In>
HWY_INLINE void transpose_four(const In* from, std::int64_t column, std::int64_t rows, T* to,
                               std::int64_t pitch) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t lanes = hn::MaxLanes(d);
  for (std::int64_t i = 0; i < rows; i += lanes) {
    const auto some = static_cast<std::size_t>(std::min(lanes, rows - i));
    hn::Vec<decltype(d)> v[4];
    for (int j = 0; j < 4; ++j) {
      const In* line = from + j * column + i;
      v[j] = some == lanes ? load_as(d, line) : load_as_n(d, line, some);
    }
    HWY_ALIGN T four[4 * lanes];
    hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, four);
    for (std::size_t k = 0; k < some; ++k) {
      std::memcpy(to + (i + static_cast<std::int64_t>(k)) * pitch, four + 4 * k, 4 * sizeof(T));
    }
  }
}

template <class T, class In>
void copy_matrix(const In* from, std::int64_t row, std::int64_t column, std::int64_t rows,
                 std::int64_t columns, T* to, std::int64_t pitch) {
  const auto copy = [&](std::int64_t i, std::int64_t j) {
    to[i * pitch + j] = static_cast<T>(from[i * row + j * column]);
  };
  if constexpr (std::is_floating_point_v<T>) {
    std::int64_t j = 0;
    if (column == 1) {
      for (std::int64_t i = 0; i < rows; ++i) {
        copy_strided(to + i * pitch, from + i * row, 1, static_cast<int>(columns));
      }
      return;
    }
    if (row == 1 && rows >= static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())) / 2) {
      for (; j + 4 <= columns; j += 4) {
        transpose_four(from + j * column, column, rows, to + j, pitch);
      }
    }
    for (; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) copy(i, j);
    }
  } else {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) copy(i, j);
    }
  }
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
