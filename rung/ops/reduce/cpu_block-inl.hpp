// SPDX-License-Identifier: Apache-2.0
//
// One block of a contiguous row: what the row kernel of reduce is made of.
#if defined(RUNG_OPS_REDUCE_CPU_BLOCK_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_REDUCE_CPU_BLOCK_INL_HPP_
#undef RUNG_OPS_REDUCE_CPU_BLOCK_INL_HPP_
#else
#define RUNG_OPS_REDUCE_CPU_BLOCK_INL_HPP_
#endif

#include "rung/ops/reduce/cpu_step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {

// A lane takes up 64 elements of a block; what a block gives is added in the wide type. This is
// where the bound on the error of sums comes from: 64 additions, 3 to put the accumulators
// together, 4 for the lanes.
constexpr std::int64_t turns = 64;

template <class S>
struct Shape {
  // Eight chains cover the latency of two additions a cycle; extremes of floats keep two vectors
  // for each chain, for which registers of AVX2 suffice only with four.
  static constexpr bool two_vectors = S::extreme && S::floating;
  static constexpr int chains = two_vectors && HWY_TARGET > HWY_AVX3 ? 4 : 8;
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

/// Vector instructions for minimum and maximum drop NaN. A sum of the same elements does not: while
/// it is a number there was none. (When it is none - infinities cancel too - somebody has to look.)
template <class S>
HWY_INLINE bool suspects_nan(typename S::V sum) {
  const typename S::D d;
  return !hn::AllFalse(d, hn::IsNaN(sum));
}

template <class T>
HWY_INLINE bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(value);
  }
}

template <class T>
bool has_nan(const T* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (is_nan(x[i])) return true;
  }
  return false;
}

/// Keeps a vector that is used twice from being loaded twice: compilers make it a memory operand of
/// both instructions, and two loads that wait for one line halve what may be under way (maximum of
/// 64 MiB on a 2-core Zen 5 vCPU: from 0.86 to 0.90 of the speed of the fastest peer).
template <class V>
HWY_INLINE void load_once(V& v) {
#if HWY_TARGET <= HWY_AVX3
  asm("" : "+v"(v.raw));
#elif HWY_TARGET == HWY_AVX2
  asm("" : "+x"(v.raw));
#else
  static_cast<void>(v);
#endif
}

/// One block of up to Shape<S>::block elements; NaN when there is one.
template <class S>
HWY_INLINE typename S::Lane fold_block(const typename S::Element* x, std::int64_t n, bool far) {
  using V = typename S::V;
  constexpr int chains = Shape<S>::chains;
  constexpr std::int64_t lanes = S::lanes;
  constexpr bool watch = S::extreme && S::floating;
  constexpr std::int64_t page = 4096 / sizeof(typename S::Element);
  constexpr std::int64_t line = 64 / sizeof(typename S::Element);
  const typename S::D d;
  V total;
  V sum = hn::Zero(d);
  std::int64_t i = 0;
  if (n >= Shape<S>::step) {
    V totals[chains];
    V sums[chains];
#pragma GCC unroll 8
    for (int c = 0; c < chains; ++c) {
      totals[c] = S::identity();
      sums[c] = hn::Zero(d);
    }
    for (; i + Shape<S>::step <= n; i += Shape<S>::step) {
      // The hardware's prefetchers stop at the end of a page: +3 % from L3 and memory on a 2-core
      // Zen 5 vCPU, but -8 % from L2.
      if (far && i % page == 0) {
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) __builtin_prefetch(x + i + page + k * line);
      }
#pragma GCC unroll 8
      for (int c = 0; c < chains; ++c) {
        V v = S::load(x + i + c * lanes);
        if constexpr (watch) {
          load_once(v);
          sums[c] = hn::Add(sums[c], v);
        }
        totals[c] = S::take(totals[c], v);
      }
    }
    total = join_all<S>(totals);
    if constexpr (watch) {
#pragma GCC unroll 8
      for (int c = 0; c < chains; ++c) sum = hn::Add(sum, sums[c]);
    }
  } else if (n >= lanes) {
    const V v = S::load(x);
    i = lanes;
    // The first vector as it is; squares still have to be made.
    total = S::fold == Fold::squares ? S::take(S::identity(), v) : v;
    if constexpr (watch) sum = v;
  } else {
    total = S::identity();
  }
  for (; i + lanes <= n; i += lanes) {
    const V v = S::load(x + i);
    total = S::take(total, v);
    if constexpr (watch) sum = hn::Add(sum, v);
  }
  if (i < n) {
    const V v = S::load_some(x + i, n - i);
    total = S::take(total, v);
    // Beyond n lie infinities, which make no NaN of a sum of one sign; the odd false alarm is
    // looked into.
    if constexpr (watch) sum = hn::Add(sum, v);
  }
  if constexpr (watch) {
    if (HWY_UNLIKELY(suspects_nan<S>(sum)) && has_nan(x, n)) {
      return std::numeric_limits<typename S::Lane>::quiet_NaN();
    }
  }
  return S::across(total);
}

/// Squares of f32 that overflow, or are so small that digits vanish, are made again in f64.
template <class S>
HWY_INLINE double square_sum(const typename S::Element* x, std::int64_t n, bool far) {
  const auto sum = fold_block<S>(x, n, far);
  if constexpr (std::is_same_v<typename S::Element, float>) {
    if (HWY_UNLIKELY(!(sum > 0x1p-100F && sum < std::numeric_limits<float>::infinity()))) {
      return fold_block<Step<float, Fold::squares, double>>(x, n, false);
    }
  }
  return sum;
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
