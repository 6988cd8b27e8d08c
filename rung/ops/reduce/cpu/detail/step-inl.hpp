// SPDX-License-Identifier: Apache-2.0
//
// Step<T, fold>: the vector operations of a fold: loads, accumulation and combination.
#if defined(RUNG_OPS_REDUCE_CPU_STEP_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_REDUCE_CPU_STEP_INL_HPP_
#undef RUNG_OPS_REDUCE_CPU_STEP_INL_HPP_
#else
#define RUNG_OPS_REDUCE_CPU_STEP_INL_HPP_
#endif

#include <hwy/highway.h>

#include "rung/ops/reduce/cpu/detail/kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A fold whose lanes hold A: the element type T itself, or one of twice its width.
template <class T, Fold fold_, class A>
struct Step {
  using Element = T;
  using Lane = A;
  using D = hn::ScalableTag<A>;
  using V = hn::Vec<D>;
  static constexpr Fold fold = fold_;
  static constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  static constexpr bool extreme = fold == Fold::least || fold == Fold::greatest;
  static constexpr bool floating = !std::is_integral_v<A>;

  static HWY_INLINE V identity() { return hn::Set(D(), reduce_cpu::identity<A>(fold)); }

  static HWY_INLINE V load(const T* p) {
    if constexpr (std::is_same_v<A, T>) {
      return hn::LoadU(D(), p);
    } else {
      return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<T, D>(), p));
    }
  }

  /// Loads the first `count` < lanes elements, and the identity into the other lanes; reads no
  /// element beyond them.
  static HWY_INLINE V load_some(const T* p, std::int64_t count) {
    // The remainder shows the compiler that n < lanes: FirstN() then needs no branch and is
    // hoisted.
    const auto n = static_cast<std::size_t>(count) % lanes;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    const hn::Rebind<T, D> d;
    const auto part = hn::MaskedLoad(hn::FirstN(d, n), d, p);
    V v;
    if constexpr (std::is_same_v<A, T>) {
      v = part;
    } else {
      v = hn::PromoteTo(D(), part);
    }
    // Zero is the identity of sums.
    if constexpr (fold == Fold::sum || fold == Fold::squares) return v;
    return hn::IfThenElse(hn::FirstN(D(), n), v, identity());
#else
    HWY_ALIGN A lane[lanes];
    for (std::size_t i = 0; i < lanes; ++i) {
      lane[i] = i < n ? static_cast<A>(p[i]) : reduce_cpu::identity<A>(fold);
    }
    return hn::Load(D(), lane);
#endif
  }

  /// Accumulates elements into a partial result. Extremes may lose NaN: see take_with_nan.
  static HWY_INLINE V take(V total, V v) {
    if constexpr (fold == Fold::squares) {
      return hn::MulAdd(v, v, total);
    } else {
      return join(total, v);
    }
  }

  /// Combines two partial results.
  static HWY_INLINE V join(V a, V b) {
    if constexpr (fold == Fold::product) {
      return hn::Mul(a, b);
    } else if constexpr (fold == Fold::least) {
      return hn::Min(a, b);
    } else if constexpr (fold == Fold::greatest) {
      return hn::Max(a, b);
    } else {
      return hn::Add(a, b);
    }
  }

  /// Returns the lanes where `b` replaces `a`: `b` is smaller (greater), or NaN while `a` is not.
  static HWY_INLINE hn::Mask<D> wins(V b, V a) {
    const auto better = fold == Fold::least ? hn::Lt(b, a) : hn::Gt(b, a);
    if constexpr (floating) {
      return hn::AndNot(hn::IsNaN(a), hn::Or(hn::IsNaN(b), better));
    } else {
      return better;
    }
  }

  /// Accumulates like take(), but propagates NaN.
  static HWY_INLINE V take_with_nan(V total, V v) {
    if constexpr (extreme && floating) {
      return hn::IfThenElse(wins(v, total), v, total);
    } else {
      return take(total, v);
    }
  }

  /// Returns the combination of all lanes, without a branch: a misprediction would discard loads in
  /// flight.
  static HWY_INLINE A across(V v) {
    const D d;
    if constexpr (fold == Fold::least) {
      return hn::GetLane(hn::MinOfLanes(d, v));
    } else if constexpr (fold == Fold::greatest) {
      return hn::GetLane(hn::MaxOfLanes(d, v));
    } else if constexpr (fold == Fold::product) {
      HWY_ALIGN A lane[lanes];
      hn::Store(v, d, lane);
      for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
        for (std::int64_t i = 0; i < half; ++i) {
          lane[i] = reduce_cpu::multiply(lane[i], lane[i + half]);
        }
      }
      return lane[0];
    } else {
      return hn::GetLane(hn::SumOfLanes(d, v));
    }
  }
};

/// Returns whether a sum of squares in f32 neither overflowed nor underflowed.
inline bool squares_suffice(float sum) {
  return sum > 0x1p-100F && sum < std::numeric_limits<float>::infinity();
}

}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
