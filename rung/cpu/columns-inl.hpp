// SPDX-License-Identifier: Apache-2.0
//
// Vectorization across adjacent rows (along any axis but the last): rows become the columns of a
// block, and each lane processes one column.
//
// Shapes   a block of any number of columns, with any stride between the elements of a column.
// Cost     one vector load or store per element and vector of columns; the last vector is masked.
#if defined(RUNG_CPU_COLUMNS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_COLUMNS_INL_HPP_
#undef RUNG_CPU_COLUMNS_INL_HPP_
#else
#define RUNG_CPU_COLUMNS_INL_HPP_
#endif

#include "rung/cpu/row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {

/// Block of columns: element i of column j is at i * step + j.
template <class T>
struct ColumnBlock {
  T* first;
  std::int64_t step;
};

/// Calls body(j, n) for each vector of columns: j is its first column, n the number of its columns.
template <class Sum, class Body>
HWY_INLINE void for_columns(std::int64_t columns, Body&& body) {
  const std::size_t lanes = hn::Lanes(Full<Sum>());
  for (std::int64_t j = 0; j < columns; j += static_cast<std::int64_t>(lanes)) {
    body(j, std::min(lanes, static_cast<std::size_t>(columns - j)));
  }
}

template <class D, class T>
HWY_INLINE hn::Vec<D> load_columns(D d, const T* p, std::size_t n) {
  return n == hn::Lanes(d) ? load_as(d, p) : load_as_n(d, p, n);
}
template <class D, class V, class Y>
HWY_INLINE void store_columns(V value, D d, Y* p, std::size_t n) {
  if (n == hn::Lanes(d)) {
    store_as(value, d, p);
  } else {
    store_as_n(value, d, p, n);
  }
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
