// SPDX-License-Identifier: Apache-2.0
//
// One block of a contiguous row: what the row kernel of reduce is made of.
#if defined(RUNG_OPS_REDUCE_CPU_BLOCK_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_REDUCE_CPU_BLOCK_INL_HPP_
#undef RUNG_OPS_REDUCE_CPU_BLOCK_INL_HPP_
#else
#define RUNG_OPS_REDUCE_CPU_BLOCK_INL_HPP_
#endif

#include "rung/ops/reduce/cpu/detail/step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {

// A lane accumulates 64 elements of a block; what a block gives is added in the wide type. This is
// where the bound on the error of sums comes from: 64 additions, 3 to put the accumulators
// together, 4 for the lanes.
constexpr std::int64_t turns = 64;

/// For Reading::lines and Reading::asked: how many lines ahead of x, and into which cache.
template <Reading reading>
inline constexpr std::int64_t lines_ahead = reading == Reading::asked ? 64 : 32;
template <Reading reading>
inline constexpr int into_cache = reading == Reading::asked ? 2 : 3;

template <class S>
struct Shape {
  static constexpr int chains = 8;  // they cover the latency of two additions per cycle
  static constexpr std::int64_t step = chains * S::lanes;
  static constexpr std::int64_t block = turns * step;
};

template <class S>
HWY_INLINE typename S::V join_all(typename S::V (&total)[Shape<S>::chains]) {
#pragma GCC unroll 4
  for (int half = Shape<S>::chains / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int c = 0; c < half; ++c) total[c] = S::join(total[c], total[c + half]);
  }
  return total[0];
}

/// Whether extremes of floats have met a NaN. Vector instructions for minimum and maximum give
/// their second operand where one is NaN: a total is NaN after it took one up, and forgets it with
/// the next element. So pairs of totals are looked at after every turn, which costs half an
/// instruction a vector. Instructions matter even far from L1: the fewer there are between two
/// loads, the more lines are waited for at a time (maximum of 64 MiB, 2-core Zen 5 vCPU: 39 GB/s
/// with a load, a maximum and an addition that keeps NaN for each vector, 47 with this, 48 without
/// any NaN; one vector used by two instructions as a memory operand of both is no better).
template <class S>
class NanWatch {
 public:
  static constexpr bool on = S::extreme && S::floating;
  /// Elsewhere totals keep NaN, so that looking at them in the end will do.
  static constexpr bool every_turn = on && HWY_TARGET <= HWY_AVX2;
  using V = typename S::V;

  HWY_INLINE NanWatch() {
    for (auto& one : ordered_) one = hn::Eq(hn::Zero(D()), hn::Zero(D()));
  }

  static HWY_INLINE V take(V total, V v) {
    return every_turn ? S::take(total, v) : S::take_with_nan(total, v);
  }

  HWY_INLINE void see(const V (&totals)[Shape<S>::chains]) {
#pragma GCC unroll 4
    for (int pair = 0; pair < pairs; ++pair) see(pair, totals[2 * pair], totals[2 * pair + 1]);
  }
  HWY_INLINE void see(int pair, V a, V b) {
    auto& ordered = ordered_[pair];
#if HWY_TARGET <= HWY_AVX3
    // One instruction; a comparison and an And are not made one by the compiler.
    if constexpr (std::is_same_v<typename S::Lane, float>) {
      ordered.raw = _mm512_mask_cmp_ps_mask(ordered.raw, a.raw, b.raw, _CMP_ORD_Q);
    } else {
      ordered.raw = _mm512_mask_cmp_pd_mask(ordered.raw, a.raw, b.raw, _CMP_ORD_Q);
    }
#elif HWY_TARGET == HWY_AVX2
    if constexpr (std::is_same_v<typename S::Lane, float>) {
      ordered.raw = _mm256_and_ps(ordered.raw, _mm256_cmp_ps(a.raw, b.raw, _CMP_ORD_Q));
    } else {
      ordered.raw = _mm256_and_pd(ordered.raw, _mm256_cmp_pd(a.raw, b.raw, _CMP_ORD_Q));
    }
#else
    ordered = hn::And(ordered, hn::And(hn::Eq(a, a), hn::Eq(b, b)));
#endif
  }

  [[nodiscard]] HWY_INLINE bool met() const {
    const auto left = hn::And(ordered_[0], ordered_[1]);
    const auto right = hn::And(ordered_[2], ordered_[3]);
    return !hn::AllTrue(D(), hn::And(left, right));
  }

 private:
  using D = typename S::D;
  static constexpr int pairs = Shape<S>::chains / 2;
  hn::Mask<D> ordered_[pairs];
};

/// One element or vector a chain: chain c takes what lies `apart` elements behind chain c - 1's.
template <class S, Reading reading, class Take>
HWY_INLINE void take_step(typename S::V (&totals)[Shape<S>::chains], const typename S::Element* at,
                          [[maybe_unused]] std::int64_t apart, const Take& take) {
  constexpr auto line = static_cast<std::int64_t>(64 / sizeof(*at));
#pragma GCC unroll 8
  for (int c = 0; c < Shape<S>::chains; ++c) {
    if ((reading == Reading::lines || reading == Reading::asked) && c * S::lanes % line == 0) {
      __builtin_prefetch(at + c * S::lanes + lines_ahead<reading> * line, 0, into_cache<reading>);
    }
    const std::int64_t place = c * (reading == Reading::streams ? apart : S::lanes);
    totals[c] = take(totals[c], S::load(at + place));
  }
}

/// Whole pages from memory on, each of whose first lines is asked for a page ahead, since the
/// hardware's prefetchers stop at the end of a page. Returns how many elements that were.
template <class S, class Step>
HWY_INLINE std::int64_t each_page(const typename S::Element* x, std::int64_t n, const Step& step) {
  constexpr auto line = static_cast<std::int64_t>(64 / sizeof(*x));
  constexpr std::int64_t page = 64 * line;
  std::int64_t i = 0;
  for (; i + page <= n; i += page) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) __builtin_prefetch(x + i + page + k * line);
      // Unrolled, because the loop's own instructions wait with the loads: see NanWatch.
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < page; j += Shape<S>::step) step(x + i + j);
  }
  return i;
}

/// One block of up to Shape<S>::block elements; NaN when extremes meet one. With streams, n is a
/// multiple of Shape<S>::step.
template <class S, Reading reading>
HWY_INLINE typename S::Lane fold_block(const typename S::Element* x, std::int64_t n,
                                       std::int64_t apart = S::lanes) {
  using V = typename S::V;
  using Watch = NanWatch<S>;
  constexpr int chains = Shape<S>::chains;
  constexpr std::int64_t lanes = S::lanes;
  Watch watch;
  V total;
  std::int64_t i = 0;
  if (n >= Shape<S>::step) {
    V totals[chains];
#pragma GCC unroll 8
    for (int c = 0; c < chains; ++c) totals[c] = S::identity();
    const auto step = [&](const auto* at) __attribute__((always_inline)) {
      take_step<S, reading>(totals, at, apart, Watch::take);
      if constexpr (Watch::every_turn) watch.see(totals);
    };
    if constexpr (reading == Reading::pages) i = each_page<S>(x, n, step);
    const auto* at = x + i;
    for (; i + Shape<S>::step <= n; i += Shape<S>::step) {
      step(at);
      at += reading == Reading::streams ? lanes : Shape<S>::step;
    }
    if constexpr (Watch::on && !Watch::every_turn) watch.see(totals);
    total = join_all<S>(totals);
  } else if (n >= lanes) {
    const V v = S::load(x);
    i = lanes;
    // The first vector as it is; squares still have to be made.
    total = S::fold == Fold::squares ? S::take(S::identity(), v) : v;
    if constexpr (Watch::on) watch.see(0, v, v);
  } else {
    total = S::identity();
  }
  for (; i + lanes <= n; i += lanes) {
    total = Watch::take(total, S::load(x + i));
    if constexpr (Watch::on) watch.see(0, total, total);
  }
  if (i < n) {
    total = Watch::take(total, S::load_some(x + i, n - i));
    if constexpr (Watch::on) watch.see(0, total, total);
  }
  if constexpr (Watch::on) {
    if (HWY_UNLIKELY(watch.met())) return std::numeric_limits<typename S::Lane>::quiet_NaN();
  }
  return S::across(total);
}

#if HWY_TARGET <= HWY_AVX3
/// The extreme of a long row of floats from memory, NaN when there is one. An instruction for
/// minimum or maximum notes by itself that it met a NaN, as an invalid operation: one look at that
/// flag, which waits for all that is in flight, spares one at each pair of vectors (64 MiB: 1.09
/// of the speed of the fastest peer instead of 1.0).
template <class S>
typename S::Lane long_extreme(const typename S::Element* x, std::int64_t n) {
  constexpr unsigned invalid = 1;
  typename S::V totals[Shape<S>::chains];
  // Neither flag is read or written between these; the compiler knows nothing of flags.
  const auto fence = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (auto& total : totals) asm volatile("" : "+v"(total.raw));
  };
  for (auto& total : totals) total = S::identity();
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before & ~invalid);
  fence();
  const std::int64_t whole = each_page<S>(
      x, n, [&](const auto* at) __attribute__((always_inline)) {
        take_step<S, Reading::pages>(totals, at, 0, S::take);
      });
  fence();
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before | after);
  if ((after & invalid) != 0) return std::numeric_limits<typename S::Lane>::quiet_NaN();
  const auto best = S::across(join_all<S>(totals));
  const auto rest = fold_block<S, Reading::near>(x + whole, n - whole);
  return wins(S::fold, rest, best) ? rest : best;
}
#endif

/// Whether a sum of squares in f32 has neither overflown nor lost digits by being small.
inline bool squares_suffice(float sum) {
  return sum > 0x1p-100F && sum < std::numeric_limits<float>::infinity();
}

/// Those that do not suffice are made again in f64.
template <class S, Reading reading>
HWY_INLINE double square_sum(const typename S::Element* x, std::int64_t n, std::int64_t apart) {
  const auto sum = fold_block<S, reading>(x, n, apart);
  if constexpr (std::is_same_v<typename S::Element, float>) {
    if (HWY_UNLIKELY(!squares_suffice(sum))) {
      using Wider = Step<float, Fold::squares, double>;
      // What streams leave is less than a step of floats and has no chains, though it may be a step
      // of doubles.
      if (reading != Reading::streams || n < Shape<S>::step) {
        return fold_block<Wider, Reading::near>(x, n);
      }
      return fold_block<Wider, Reading::streams>(x, n, apart);
    }
  }
  return sum;
}

template <class T>
HWY_INLINE bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(value);
  }
}

/// The first element that is `value` (any NaN for a NaN).
template <class T>
std::int64_t find(const T* x, std::int64_t n, T value) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  const auto wanted = hn::Set(d, value);
  const bool any_nan = is_nan(value);
  const auto hits = [&](auto v) {
    if constexpr (!std::is_integral_v<T>) {
      if (any_nan) return hn::IsNaN(v);
    }
    return hn::Eq(v, wanted);
  };
  for (; i + lanes <= n; i += lanes) {
    const auto at = hn::FindFirstTrue(d, hits(hn::LoadU(d, x + i)));
    if (at >= 0) return i + at;
  }
  for (; i < n; ++i) {
    if (any_nan ? is_nan(x[i]) : x[i] == value) return i;
  }
  return -1;
}

}  // namespace
}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
