// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of lines in the arithmetic type, from and to elements of any type and stride.
//
// Shapes   any length and alignment. Accesses exactly `count` elements in memory of T. Source and
//          destination must not overlap.
// Cost     stride 1: one load and store per vector, the last masked or overlapping; otherwise
//          element by element.
#if defined(RUNG_CPU_STRIDED_LINE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_STRIDED_LINE_INL_HPP_
#undef RUNG_CPU_STRIDED_LINE_INL_HPP_
#else
#define RUNG_CPU_STRIDED_LINE_INL_HPP_
#endif

#include <cstdint>

#include "rung/cpu/load-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {

/// Loads elements that are `step` apart into a line, which must have room for whole vectors: lanes
/// past `count` become 0.
template <class T, class S>
HWY_INLINE void load_strided(const T* from, std::int64_t step, std::int64_t count, S* line) {
  if (step != 1) {
    for (std::int64_t i = 0; i < count; ++i) line[i] = static_cast<S>(from[i * step]);
    return;
  }
  const hn::ScalableTag<S> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(load_as(d, from + i), d, line + i);
  if (i == count) return;
  hn::StoreU(load_as_n(d, from + i, static_cast<std::size_t>(count - i)), d, line + i);
}

/// Stores a line to elements that are `step` apart, rounded to nearest even.
template <class T, class S>
HWY_INLINE void store_strided(const S* line, std::int64_t count, T* to, std::int64_t step) {
  if (step != 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i * step] = static_cast<T>(line[i]);
    return;
  }
  const hn::ScalableTag<S> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store_as(hn::LoadU(d, line + i), d, to + i);
  if (i == count) return;
  if (count > lanes) {
    store_as(hn::LoadU(d, line + count - lanes), d, to + count - lanes);
  } else {
    const auto n = static_cast<std::size_t>(count - i);
    store_as_n(load_as_n(d, line + i, n), d, to + i, n);
  }
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
