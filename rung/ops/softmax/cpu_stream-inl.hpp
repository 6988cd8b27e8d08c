// SPDX-License-Identifier: Apache-2.0
//
// Rows of softmax whose results go around the caches: several rows are worked on in turn, so that
// memory is read and written all the time. Each row's bits are those that it would have alone.
#if defined(RUNG_OPS_SOFTMAX_CPU_STREAM_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_SOFTMAX_CPU_STREAM_INL_HPP_
#undef RUNG_OPS_SOFTMAX_CPU_STREAM_INL_HPP_
#else
#define RUNG_OPS_SOFTMAX_CPU_STREAM_INL_HPP_
#endif

#include "rung/ops/softmax/cpu_row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {

/// How many elements of Y lie before the first that a streaming store may begin with.
template <class Sum, class Y>
HWY_INLINE std::int64_t before_vectors(const Y* y) {
  const std::size_t bytes = hn::Lanes(Full<Sum>()) * sizeof(Y);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(y) % bytes;
  return static_cast<std::int64_t>((bytes - past) % bytes / sizeof(Y));
}

/// A row's maximum, and the sum of its exponentials below it.
template <class Sum>
struct RowStatistics {
  Sum maximum;
  Sum sum;
};

/// A row on its way out, and the two behind it.
template <class T, class Y>
struct RowsInTurn {
  const T* x;
  Y* y;
  const T* next;        // null: there is none
  const T* after_next;  // or null
  const T* fetched;     // the row behind them, or one that is there
};

/// Writes y of one row, makes the exponentials of the next and finds the maximum of the one after
/// that, a few elements of each in turn. The exponentials take the places of those that have just
/// been written. What is asked for lies so far ahead that memory has answered when its maximum is
/// looked for: with exponentials to make and lines to write meanwhile, nobody waits.
template <bool log, class Sum, class T, class Y>
HWY_INLINE void stream_row(const RowsInTurn<T, Y>& rows, std::int64_t length, Sum scale,
                           const RowStatistics<Sum>& here, RowStatistics<Sum>& next,
                           Sum& maximum_after, Sum* kept) {
  const Full<Sum> d;
  constexpr std::int64_t ahead = fetched_ahead / static_cast<std::int64_t>(sizeof(T));
  const auto high = hn::Set(d, here.maximum);
  const auto factor = hn::Set(d, log ? scale : reciprocal(here.sum));
  const auto shift = hn::Set(d, log ? logarithm(here.sum) : Sum{0});
  Chains<Sum> sums(0);
  Chains<Sum> maxima(no_maximum<Sum>);
  const std::int64_t head = before_vectors<Sum>(rows.y);
  std::int64_t written = 0;
  for (std::int64_t first = 0; first < length; first += turn) {
    const std::int64_t end = std::min(first + turn, length);
    // Up to where a vector of y ends: not before `end`, where exponentials are about to change.
    const std::int64_t until = end == length ? length : std::min(end + head, length);
    write_row<Sum>(rows.y + written, until - written, true,
                   [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
                     if constexpr (log) {
                       const auto value = load_some(d, rows.x + written + i, n...);
                       return hn::MulSub(hn::Sub(value, high), factor, shift);
                     } else {
                       return hn::Mul(load_some(d, kept + written + i, n...), factor);
                     }
                   });
    written = until;
    if (rows.next == nullptr) continue;
    const T* fetch = first + ahead < length ? rows.after_next + first + ahead
                                            : rows.fetched + (first + ahead - length);
    add_exponentials<!log>(sums, rows.next + first, end - first, next.maximum, scale, kept + first,
                           rows.after_next != nullptr ? fetch : nullptr);
    if (rows.after_next != nullptr) take_maximum(maxima, rows.after_next + first, end - first);
  }
  next.sum = sums.sum();
  maximum_after = maxima.maximum();
}

/// write_gradient of one row, around the caches, and row_products of the next. Memory is read and
/// written all the time instead of by turns (4096x4096 on a 2-core Zen 5 vCPU: 5.4 ms apart, 4.5
/// together). The one row is written from its end: what was read last is in L1 still, three
/// quarters of a row of 4096 (4.3 ms from its beginning, 3.8 from its end). No logarithm.
template <class Sum, class T, class Y>
HWY_INLINE Sum stream_gradient(const T* y, const T* dy, Y* dx, const T* next_y, const T* next_dy,
                               std::int64_t length, Sum sum, Sum scale) {
  using Stored = cpu::HWY_NAMESPACE::StoredTag<Y, Full<Sum>>;
  using Bits = hn::TFromD<Stored>;
  const Full<Sum> d;
  const auto total = hn::Set(d, sum);
  const auto factor = hn::Set(d, scale);
  Chains<Sum> chains(0);
  const auto gradient = [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    const auto incoming = load_some(d, dy + i, n...);
    return hn::Mul(hn::Mul(hn::Sub(incoming, total), load_some(d, y + i, n...)), factor);
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t head = std::min(before_vectors<Sum>(dx), length);
  const std::int64_t whole = (length - head) / (4 * lanes) * (4 * lanes);
  for (std::int64_t i = 0; i < whole; i += 4 * lanes) {
    const std::int64_t from_end = head + whole - 4 * lanes - i;
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const std::int64_t at = i + c * lanes;
      chains.at[c] = hn::MulAdd(load_as(d, next_dy + at), load_as(d, next_y + at), chains.at[c]);
      const std::int64_t to = from_end + c * lanes;
      hn::Stream(cpu::HWY_NAMESPACE::narrow<Y>(d, gradient(to)), Stored(),
                 reinterpret_cast<Bits*>(dx + to));
    }
  }
  if (head > 0) {
    const auto count = static_cast<std::size_t>(head);
    store_as_n(gradient(0, count), d, dx, count);
  }
  const std::int64_t behind = head + whole;
  write_row<Sum>(dx + behind, length - behind, true,
                 [&](std::int64_t i, auto... n)
                     HWY_ATTR RUNG_ALWAYS_INLINE { return gradient(behind + i, n...); });
  add_products(chains, next_y + whole, next_dy + whole, length - whole);
  return chains.sum();
}

}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
