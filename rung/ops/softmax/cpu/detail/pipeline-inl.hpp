// SPDX-License-Identifier: Apache-2.0
//
// Software pipeline over contiguous rows of softmax: one is written, with non-temporal stores or
// ordinary ones, while the exponentials of the next and the maximum of the one after that are
// computed. Each row's bits are those that it would have alone.
#if defined(RUNG_OPS_SOFTMAX_CPU_PIPELINE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_SOFTMAX_CPU_PIPELINE_INL_HPP_
#undef RUNG_OPS_SOFTMAX_CPU_PIPELINE_INL_HPP_
#else
#define RUNG_OPS_SOFTMAX_CPU_PIPELINE_INL_HPP_
#endif

#include "rung/cpu/ahead.hpp"
#include "rung/ops/softmax/cpu/detail/row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {

/// A row's maximum, and the sum of its exponentials below it.
template <class Sum>
struct RowStatistics {
  Sum maximum;
  Sum sum;
};

/// The rows in the three stages: written, exponentiated, maximum found.
template <class T, class Y>
struct PipelineStages {
  const T* x;
  Y* y;
  const T* next;
  const T* after_next;
  cpu::PrefetchedRows<T> coming;  // prefetched where y is streamed
};

/// One turn of the pipeline, vector by vector: stores row r, exponentiates row r + 1, finds the
/// maximum of row r + 2. Memory and arithmetic overlap, and no row waits for its sum's last
/// exponential (on a 2-core Zen 4 vCPU, one thread, in place of a pass for each: 64x1024 in L2 47
/// GB/s instead of 36, 16384x1024 in memory 34 instead of 28). `streams`: by non-temporal stores,
/// from the end of the row. 4K aliasing: y is then not written at the addresses, modulo 4 KiB, that
/// x is read at (16384x1024: 26 GB/s from its beginning). `made`, the exponentials of row r + 1,
/// must be apart from `kept`, those of row r, then; in the caches they may share memory, which
/// saves half of L1.
template <bool log, bool streams, class Sum, class T, class Y>
HWY_INLINE void pipeline_rows(const PipelineStages<T, Y>& rows, std::int64_t length, Sum scale,
                              const RowStatistics<Sum>& here, RowStatistics<Sum>& next,
                              Sum& maximum_after, const Sum* kept, Sum* made) {
  using Stored = StoredTag<Y, Full<Sum>>;
  using Bits = hn::TFromD<Stored>;
  const Full<Sum> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  const auto high = hn::Set(d, here.maximum);
  const auto factor = hn::Set(d, log ? scale : reciprocal(here.sum));
  const auto shift = hn::Set(d, log ? logarithm(here.sum) : Sum{0});
  const auto next_high = hn::Set(d, next.maximum);
  const auto exponent = hn::Set(d, scale * log2_e<Sum>);
  const auto result = [&](std::int64_t i, auto... n) HWY_ATTR RUNG_ALWAYS_INLINE {
    if constexpr (log) {
      return hn::MulSub(hn::Sub(load_some(d, rows.x + i, n...), high), factor, shift);
    } else {
      return hn::Mul(load_some(d, kept + i, n...), factor);
    }
  };
  const std::int64_t head = streams ? std::min(before_vectors<Sum>(rows.y), length) : 0;
  const std::int64_t whole = (length - head) / (4 * lanes) * (4 * lanes);
  const std::int64_t behind = head + whole;
  if (head > 0) {
    const auto count = static_cast<std::size_t>(head);
    store_as_n(result(0, count), d, rows.y, count);
  }
  write_row<Sum>(rows.y + behind, length - behind, streams,
                 [&](std::int64_t i, auto... n)
                     HWY_ATTR RUNG_ALWAYS_INLINE { return result(behind + i, n...); });
  if (streams) rows.coming.ask_from(whole, prefetch_into_l2);
  Chains<Sum> sums(0);
  Chains<Sum> maxima(no_maximum<Sum>);
  for (std::int64_t i = 0; i < whole; i += 4 * lanes) {
    const std::int64_t out = streams ? behind - 4 * lanes - i : i;
    const T* ask = rows.coming.place(i);
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const std::int64_t at = i + c * lanes;
      const std::int64_t to = out + c * lanes;
      if (streams && c * lanes % line == 0) prefetch(ask + c * lanes);
      maxima.at[c] = hn::Max(load_as(d, rows.after_next + at), maxima.at[c]);
      if constexpr (streams) {
        hn::Stream(narrow<Y>(d, result(to)), Stored(), reinterpret_cast<Bits*>(rows.y + to));
      } else {
        store_as(result(to), d, rows.y + to);
      }
      const auto difference = hn::Sub(load_as(d, rows.next + at), next_high);
      const auto e = exp2<false>(d, hn::Mul(difference, exponent));
      if constexpr (!log) hn::StoreU(e, d, made + at);
      sums.at[c] = hn::Add(sums.at[c], e);
    }
  }
  add_exponentials<!log>(sums, rows.next + whole, length - whole, next.maximum, scale, made + whole,
                         static_cast<const T*>(nullptr));
  take_maximum(maxima, rows.after_next + whole, length - whole);
  next.sum = sums.sum();
  maximum_after = maxima.maximum();
}

}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
