// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions of vectors that several operators need.
#if defined(RUNG_CPU_MATH_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_MATH_INL_HPP_
#undef RUNG_CPU_MATH_INL_HPP_
#else
#define RUNG_CPU_MATH_INL_HPP_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// 1 / (1 + exp(-x)). exp(-|x|) cannot overflow, and exp(x) / (1 + exp(x)) keeps all digits of the
/// small values on the left.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1);
  const V e = hn::CallExp(d, hn::Neg(hn::Abs(x)));
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(one, e));
}

/// Lane by lane, for what has no vector form here.
template <class D, class V, class F>
HWY_INLINE V each_lane(D d, V x, F f) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(x, d, lanes);
  for (auto& lane : lanes) lane = f(lane);
  return hn::Load(d, lanes);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  return each_lane(d, x, [](hn::TFromD<D> v) { return std::tanh(v); });
}

/// x Phi(x), Phi the normal distribution function, through erfc: 1 + erf would cancel for x < 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu(D d, V x) {
  using T = hn::TFromD<D>;
  return each_lane(d, x,
                   [](T v) { return v * T(0.5) * std::erfc(v * T(-0.70710678118654752440)); });
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
