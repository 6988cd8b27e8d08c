// SPDX-License-Identifier: Apache-2.0
//
// Vectorized passes over one contiguous row: maximum, sum of exponentials, and stores, ordinary or
// non-temporal. Used by softmax, its gradient and loss.
//
// Shapes   any length and alignment; elements of T are read in the type Sum of the arithmetic.
// Cost     four accumulators hide the latency of max and add; the tail is one masked vector.
#if defined(RUNG_CPU_ROW_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_ROW_INL_HPP_
#undef RUNG_CPU_ROW_INL_HPP_
#else
#define RUNG_CPU_ROW_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "rung/core/export.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/prefetch.hpp"
#include "rung/cpu/vector_exp2-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Sum>
using Full = hn::ScalableTag<Sum>;
template <class Sum>
using Vector = hn::Vec<Full<Sum>>;

/// Initial value of maxima: finite, so that -infinity minus the maximum is -infinity, not NaN. A
/// sum of 0 then identifies a row whose elements are all -infinity.
template <class Sum>
inline constexpr Sum no_maximum = std::numeric_limits<Sum>::lowest();

/// Calls body(i, chain) for full vectors, four per iteration to hide latency, then one, and rest(i,
/// count) for the tail. Both lambdas must be forced inline: a single call to a lambda, even for the
/// tail, would keep everything that it captures in memory throughout the loop.
template <class Sum, class Body, class Rest>
HWY_INLINE void for_vectors(std::int64_t length, Body&& body, Rest&& rest) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Full<Sum>()));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= length; i += 4 * lanes) {
    body(i, 0);
    body(i + lanes, 1);
    body(i + 2 * lanes, 2);
    body(i + 3 * lanes, 3);
  }
  for (; i + lanes <= length; i += lanes) body(i, 0);
  if (i < length) rest(i, static_cast<std::size_t>(length - i));
}

/// Four accumulators, initialized to `start`.
template <class Sum>
struct Chains {
  Vector<Sum> at[4];
  explicit HWY_INLINE Chains(Sum start) {
    const auto value = hn::Set(Full<Sum>(), start);
    at[0] = at[1] = at[2] = at[3] = value;
  }
  HWY_INLINE Sum sum() const {
    const Full<Sum> d;
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(at[0], at[1]), hn::Add(at[2], at[3]))));
  }
  HWY_INLINE Sum maximum() const {
    const Full<Sum> d;
    return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(at[0], at[1]), hn::Max(at[2], at[3]))));
  }
};

/// Updates the maxima of the chains with a row.
template <class Sum, class T>
HWY_INLINE void take_maximum(Chains<Sum>& chains, const T* x, std::int64_t length) {
  const Full<Sum> d;
  for_vectors<Sum>(
      length,
      [&](std::int64_t i, int c) HWY_ATTR RUNG_ALWAYS_INLINE {
        chains.at[c] = hn::Max(load_as(d, x + i), chains.at[c]);  // the second operand if x is NaN
      },
      [&](std::int64_t i, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
        const auto value = load_as_n(d, x + i, n);
        chains.at[1] = hn::IfThenElse(hn::FirstN(d, n), hn::Max(value, chains.at[1]), chains.at[1]);
      });
}
template <class Sum, class T>
HWY_INLINE Sum row_maximum(const T* x, std::int64_t length) {
  Chains<Sum> chains(no_maximum<Sum>);
  take_maximum(chains, x, length);
  return chains.maximum();
}

const bool prefetch_into_l2 = prefetches_into_l2();

/// Prefetches a line into L1, or into L2 if prefetches_into_l2() (softmax of 4096x4096 on a
/// 2-core Zen 4 vCPU, one thread and two: 26.6 and 40.8 GB/s instead of 17.5 and 31.7).
HWY_INLINE void prefetch(const void* place) { prefetch_line(place, prefetch_into_l2); }

/// Adds exp(scale (x - maximum)) to the chains, and with `keep` stores it in `kept`. Prefetches
/// `fetch`, unless null, in this pass, which is compute-bound; the pass for the maximum is
/// memory-bound (softmax of 4096x4096 on a 2-core Zen 5 vCPU: 4.9 ms without, 3.5 with).
template <bool keep, class Sum, class T>
HWY_INLINE void add_exponentials(Chains<Sum>& chains, const T* x, std::int64_t length, Sum maximum,
                                 Sum scale, Sum* kept, const T* fetch) {
  const Full<Sum> d;
  const auto high = hn::Set(d, maximum);
  const auto factor = hn::Set(d, scale * log2_e<Sum>);
  for_vectors<Sum>(
      length,
      [&](std::int64_t i, int c) HWY_ATTR RUNG_ALWAYS_INLINE {
        if (fetch != nullptr) prefetch(fetch + i);
        const auto e = exp2<false>(d, hn::Mul(hn::Sub(load_as(d, x + i), high), factor));
        if constexpr (keep) hn::StoreU(e, d, kept + i);
        chains.at[c] = hn::Add(chains.at[c], e);
      },
      [&](std::int64_t i, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
        const auto e = exp2<false>(d, hn::Mul(hn::Sub(load_as_n(d, x + i, n), high), factor));
        if constexpr (keep) store_as_n(e, d, kept + i, n);
        chains.at[1] = hn::Add(chains.at[1], hn::IfThenElseZero(hn::FirstN(d, n), e));
      });
}
template <bool keep, class Sum, class T>
HWY_INLINE Sum row_sum(const T* x, std::int64_t length, Sum maximum, Sum scale, Sum* kept,
                       const T* fetch) {
  Chains<Sum> chains(0);
  add_exponentials<keep>(chains, x, length, maximum, scale, kept, fetch);
  return chains.sum();
}

/// Returns the number of elements of Y before the first address aligned for streaming stores.
template <class Sum, class Y>
HWY_INLINE std::int64_t before_vectors(const Y* y) {
  const std::size_t bytes = hn::Lanes(Full<Sum>()) * sizeof(Y);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(y) % bytes;
  return static_cast<std::int64_t>((bytes - past) % bytes / sizeof(Y));
}

/// Stores y[i, i + n) = value(i, n) along a row. With `stream`, uses non-temporal stores, which
/// need aligned addresses: the elements before the first aligned address are a masked vector.
template <class Sum, class Y, class Value>
HWY_INLINE void write_row(Y* y, std::int64_t length, bool stream, Value&& value) {
  const Full<Sum> d;
  if (!stream) {
    for_vectors<Sum>(
        length,
        [&](std::int64_t i, int) HWY_ATTR RUNG_ALWAYS_INLINE { store_as(value(i), d, y + i); },
        [&](std::int64_t i, std::size_t n)
            HWY_ATTR RUNG_ALWAYS_INLINE { store_as_n(value(i, n), d, y + i, n); });
    return;
  }
  using Stored = StoredTag<Y, Full<Sum>>;
  const Stored stored;
  const std::int64_t head = std::min(length, before_vectors<Sum>(y));
  if (head > 0)
    store_as_n(value(0, static_cast<std::size_t>(head)), d, y, static_cast<std::size_t>(head));
  for_vectors<Sum>(
      length - head,
      [&](std::int64_t i, int) HWY_ATTR RUNG_ALWAYS_INLINE {
        using Bits = hn::TFromD<Stored>;
        hn::Stream(narrow<Y>(d, value(head + i)), stored, reinterpret_cast<Bits*>(y + head + i));
      },
      [&](std::int64_t i, std::size_t n)
          HWY_ATTR RUNG_ALWAYS_INLINE { store_as_n(value(head + i, n), d, y + head + i, n); });
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
