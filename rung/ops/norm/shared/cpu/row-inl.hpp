// SPDX-License-Identifier: Apache-2.0
//
// Moments of a block of a contiguous row, with vectors along it.
#if defined(RUNG_OPS_NORM_CPU_ROW_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_NORM_CPU_ROW_INL_HPP_
#undef RUNG_OPS_NORM_CPU_ROW_INL_HPP_
#else
#define RUNG_OPS_NORM_CPU_ROW_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/prefetch.hpp"
#include "rung/ops/norm/shared/cpu/moments.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::norm_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::load_as;
using cpu::HWY_NAMESPACE::load_as_n;

template <class T>
using Wide = Accumulator<T>;
template <class T>
using Tag = hn::ScalableTag<Wide<T>>;
template <class T>
inline constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(Tag<T>()));

// Independent accumulators, to hide the latency of an addition (3 or 4 cycles, two issued per
// cycle). Loops over them are written in the function that declares them: if a lambda captures
// them, g++ 12 keeps them in memory (three times slower).
constexpr int chains = 8;

template <class D, class V>
HWY_INLINE hn::TFromD<D> total(D d, V (&sums)[chains]) {
#pragma GCC unroll 4
  for (int k = 0; k < chains / 2; ++k) sums[k] = hn::Add(sums[k], sums[k + chains / 2]);
  const V pair = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(d, pair));
}

const bool from_dram = cpu::prefetches_into_l2();

/// Row that is prefetched line by line during the second pass over another row, which hits L1 and
/// leaves memory idle (4096x4096 on a 2-core Zen 5 vCPU: 3.7 ms instead of 4.7; prefetched in the
/// second and third pass, or in the third alone, 3.8 to 3.9).
/// Prefetched from memory into L2 if cpu::prefetches_into_l2(): on a 2-core Zen 4 vCPU,
/// 256x65536 went from 1.35 to 1.62 times the fastest peer's speed with one thread, from 1.38 to
/// 1.52 with two.
template <class T>
struct Next {
  const T* at = nullptr;  // null: nothing is prefetched
  bool far = false;

  HWY_INLINE void prefetch(std::int64_t first, std::int64_t elements) const {
    constexpr std::int64_t line = 64 / sizeof(T);
    if (at == nullptr) return;
    for (std::int64_t i = 0; i < elements; i += line) cpu::prefetch_line(at + first + i, far);
  }
};

/// Adds elements [from, n) of s to the accumulators; `from` is a multiple of the elements per loop
/// iteration.
template <class T, class V>
HWY_INLINE void add_sum(V (&sums)[chains], const T* s, std::int64_t from, std::int64_t n) {
  const Tag<T> d;
  constexpr std::int64_t step = lanes<T>;
  std::int64_t i = from;
  for (; i + chains * step <= n; i += chains * step) {
#pragma GCC unroll 8
    for (int k = 0; k < chains; ++k) sums[k] = hn::Add(sums[k], load_as(d, s + i + k * step));
  }
  for (; i + step <= n; i += step) sums[0] = hn::Add(sums[0], load_as(d, s + i));
  if (i < n) sums[1] = hn::Add(sums[1], load_as_n(d, s + i, static_cast<std::size_t>(n - i)));
}

/// Adds the differences from `middle` to `rest` and their squares to `squares`; prefetches `next`.
template <class T, class V>
HWY_INLINE void add_moments(V (&rest)[chains], V (&squares)[chains], V middle, const T* s,
                            std::int64_t from, std::int64_t n, Next<T> next) {
  const Tag<T> d;
  constexpr std::int64_t step = lanes<T>;
  std::int64_t i = from;
  for (; i + chains * step <= n; i += chains * step) {
    next.prefetch(i, chains * step);
#pragma GCC unroll 8
    for (int k = 0; k < chains; ++k) {
      const V distance = hn::Sub(load_as(d, s + i + k * step), middle);
      rest[k] = hn::Add(rest[k], distance);
      squares[k] = hn::MulAdd(distance, distance, squares[k]);
    }
  }
  for (; i + step <= n; i += step) {
    const V distance = hn::Sub(load_as(d, s + i), middle);
    rest[0] = hn::Add(rest[0], distance);
    squares[0] = hn::MulAdd(distance, distance, squares[0]);
  }
  if (i < n) {
    const auto count = static_cast<std::size_t>(n - i);
    const V distance =
        hn::IfThenElseZero(hn::FirstN(d, count), hn::Sub(load_as_n(d, s + i, count), middle));
    rest[1] = hn::Add(rest[1], distance);
    squares[1] = hn::MulAdd(distance, distance, squares[1]);
  }
}

/// Returns sum(s).
template <class T>
HWY_INLINE Wide<T> sum_of(const T* s, std::int64_t n) {
  const Tag<T> d;
  hn::Vec<Tag<T>> sums[chains];
#pragma GCC unroll 8
  for (int k = 0; k < chains; ++k) sums[k] = hn::Zero(d);
  add_sum(sums, s, 0, n);
  return total(d, sums);
}

/// Returns the moments about `center` of n <= block elements of a row; prefetches `next`.
template <class T>
HWY_INLINE Moments<Wide<T>> moments_about(Wide<T> center, const T* s, std::int64_t n,
                                          Next<T> next) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  V rest[chains];
  V squares[chains];
#pragma GCC unroll 8
  for (int k = 0; k < chains; ++k) rest[k] = squares[k] = hn::Zero(d);
  add_moments(rest, squares, V(hn::Set(d, center)), s, 0, n, next);
  return {center, total(d, rest), total(d, squares)};
}

/// Returns the moments of a row of at most `block` elements in two passes, the second from L1.
template <class T>
HWY_INLINE Moments<Wide<T>> moments_of(const T* s, std::int64_t n, bool layer, Next<T> next) {
  if (layer) {
    return finite_moments(moments_about(sum_of(s, n) / static_cast<Wide<T>>(n), s, n, next), s, n);
  }
  Moments<Wide<T>> result = moments_about<T>(0, s, n, next);
  result.rest = 0;
  return result;
}

}  // namespace
}  // namespace rung::norm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
