// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions of vectors, shared by operators.
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

/// Restores NaN in `result` where x is NaN: Highway's functions compare with bounds and lose it.
template <class V>
HWY_INLINE V keep_nan(V x, V result) {
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

/// Returns 1 / (1 + exp(-x)). Uses e = exp(-|x|), which cannot overflow; e / (1 + e) for x < 0
/// keeps the full precision of small results.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1);
  const V e = hn::CallExp(d, hn::Neg(hn::Abs(x)));
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return keep_nan(x, hn::Div(numerator, hn::Add(one, e)));
}

/// Returns tanh(x). Clamps to +-20, beyond which the result is +-1 in every type; infinities would
/// give NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V bound = hn::Set(d, 20);
  return keep_nan(x, hn::CallTanh(d, hn::Clamp(x, hn::Neg(bound), bound)));
}

/// Applies a scalar function to each lane, where no vector form exists.
template <class D, class V, class F>
HWY_INLINE V each_lane(D d, V x, F f) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(x, d, lanes);
  for (auto& lane : lanes) lane = f(lane);
  return hn::Load(d, lanes);
}

/// Returns x Phi(x) with the normal distribution function Phi; 0 at -infinity, the limit.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu(D d, V x) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 8) {
    // Uses erfc, since 1 + erf would cancel for x < 0.
    return each_lane(d, x, [](T v) {
      if (v < -40) return T(0);
      return v * T(0.5) * std::erfc(v * T(-0.70710678118654752440));
    });
  } else {
    // Tail Phi(-u) = exp(-u^2 / 2) t P(t) with t = 1 / (1 + 0.3 u). P interpolates at Chebyshev
    // nodes for u up to 14, where f32 underflows; relative error 4.4e-9.
    constexpr T p[] = {0.119687693145F,  0.119551763229F,   0.110405179847F, 0.0775890643774F,
                       0.0984807401835F, -0.0837425490162F, 0.196940677017F, -0.232038482936F,
                       0.114040272074F,  -0.0209143597288F};
    const V u = hn::Min(hn::Abs(x), hn::Set(d, 14));
    const V one = hn::Set(d, 1);
    const V t = hn::Div(one, hn::MulAdd(hn::Set(d, T(0.3)), u, one));
    V sum = hn::Set(d, p[9]);
#pragma GCC unroll 9
    for (int i = 8; i >= 0; --i) sum = hn::MulAdd(sum, t, hn::Set(d, p[i]));
    // Compensates the rounding error of u * u, which the exponential would multiply by u^2 / 2.
    const V half = hn::Set(d, T(0.5));
    const V square = hn::Mul(u, u);
    const V lost = hn::MulSub(u, u, square);
    const V power = hn::CallExp(d, hn::Neg(hn::Mul(half, square)));
    const V tail = hn::Mul(hn::Mul(hn::NegMulAdd(hn::Mul(half, lost), power, power), t), sum);
    const V phi = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -14)), hn::Mul(x, phi));
  }
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
