// SPDX-License-Identifier: Apache-2.0
//
// sigmoid, silu, tanh and gelu of vectors, as functors f(d, parameters, x, y, w) of arity 1.
#if defined(RUNG_OPS_ELEMENTWISE_CPU_ACTIVATIONS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_ELEMENTWISE_CPU_ACTIVATIONS_INL_HPP_
#undef RUNG_OPS_ELEMENTWISE_CPU_ACTIVATIONS_INL_HPP_
#else
#define RUNG_OPS_ELEMENTWISE_CPU_ACTIVATIONS_INL_HPP_
#endif

#include <limits>

#include "rung/cpu/exp-inl.hpp"
#include "rung/cpu/math-inl.hpp"
#include "rung/ops/elementwise/cpu/detail/gelu.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::elementwise_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace math = cpu::HWY_NAMESPACE;

/// Parameters that functions may read.
template <class V>
struct Parameters {
  V alpha;
};

struct Sigmoid {
  static constexpr int arity = 1;
  // 1 / (1 + e^-x) keeps the digits of small results; e^-x is infinite if the result would be
  // subnormal.
  template <class D, class V>
  HWY_INLINE V operator()(D d, const Parameters<V>&, V x, V, V) const {
    constexpr bool f32 = sizeof(hn::TFromD<D>) == 4;
    const V inside = math::clamp_keeping_nan(d, x, f32 ? -88.8F : -709.9F, 40);
    const math::ScaledExp<V> e = math::scaled_exp<-1>(d, inside);
    const V one = hn::Set(d, 1);
    // Multiplied out, since the scale may be infinite and expm1 negative.
    return hn::Div(one, hn::Add(one, hn::Mul(e.scale, hn::Add(one, e.expm1))));
  }
};
struct Silu {
  static constexpr int arity = 1;
  // x times sigmoid; 0 below a bound, since -infinity would give NaN.
  template <class D, class V>
  HWY_INLINE V operator()(D d, const Parameters<V>& p, V x, V y, V w) const {
    using T = hn::TFromD<D>;
    const V finite = math::clamp_keeping_nan(d, x, T(-1000), std::numeric_limits<T>::infinity());
    return hn::Mul(finite, Sigmoid{}(d, p, x, y, w));
  }
};
struct Tanh {
  static constexpr int arity = 1;
  template <class D, class V>
  HWY_INLINE V operator()(D d, const Parameters<V>&, V x, V, V) const {
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      return from_half(d, x);
    } else {
      // (e^2x - 1) / (e^2x + 1): e^2x - 1 without cancellation is 2^n (e^r - 1) + (2^n - 1).
      const V inside = math::clamp_keeping_nan(d, x, -20, 20);  // beyond the bounds tanh is +-1
      const math::ScaledExp<V> e = math::scaled_exp<2>(d, inside);
      const V numerator = hn::MulAdd(e.scale, e.expm1, hn::Sub(e.scale, hn::Set(d, 1)));
      return hn::Div(numerator, hn::Add(numerator, hn::Set(d, 2)));
    }
  }

 private:
  // tanh x = 2 t / (1 + t^2) with t = tanh(x / 2) = a / q, hence 2 a q / (q^2 + a^2). A relative
  // error of t enters the result with weight at most 1 / cosh x: weighted accordingly, a minimax
  // fit by a = x p(x^2) with p of degree 2 and monic q(x^2) of degree 3 has error 2.2e-8. The
  // coefficients' magnitudes keep rounding errors small: at most 3.4 ulp (3.9 without FMA), tested
  // on all floats.
  template <class D, class V>
  static HWY_INLINE V from_half(D d, V x) {
    const auto set = [&](float value) HWY_ATTR { return hn::Set(d, value); };
    const V inside = math::clamp_keeping_nan(d, x, -9.01F, 9.01F);  // beyond the bounds tanh is +-1
    const V s = hn::Mul(inside, inside);
    const V p = hn::MulAdd(hn::MulAdd(set(48.8008639F), s, set(13235.1512F)), s, set(448266.24F));
    const V q = hn::MulAdd(hn::MulAdd(hn::Add(s, set(1058.35022F)), s, set(101181.259F)), s,
                           set(896532.48F));
    const V a = hn::Mul(inside, p);
    const V result = hn::Div(hn::Mul(hn::Add(a, a), q), hn::MulAdd(q, q, hn::Mul(a, a)));
    if constexpr (HWY_NATIVE_FMA) return result;
    return math::clamp_keeping_nan(d, result, -1, 1);
  }
};
struct Gelu {
  static constexpr int arity = 1;
  // x Phi(x) = max(x, 0) - |x| Phi(-|x|), free of cancellation. The tail is Phi(-u) = 2^(-k u^2)
  // p(u) / q(u), with k the float nearest log2(e) / 2 (the quotient absorbs the error of that
  // rounding) and a minimax fit for u up to 14.5 by polynomials of degrees 4 and 5 with error
  // 7.9e-9. All their coefficients have one sign, so nothing cancels. The power of two is
  // multiplied last: the tail alone may be subnormal where |x| times the tail is not. At most 6.9
  // ulp, tested on all floats.
  template <class D, class V>
  HWY_INLINE V operator()(D d, const Parameters<V>&, V x, V, V) const {
    using T = hn::TFromD<D>;
    if constexpr (sizeof(T) == 8) {
      return math::each_lane(d, x, gelu_f64);
    } else {
      constexpr T p[] = {45.5355702308F, 40.6141714353F, 17.1912005206F, 3.86728128073F};
      constexpr T q[] = {91.0711397395F, 153.892649856F, 111.634832956F, 44.0838647045F};
      const V u = math::at_most_keeping_nan(d, hn::Abs(x), 14.5F);  // beyond, the tail is 0
      const V numerator = hn::Mul(u, horner(d, u, hn::Set(d, T(0.398940793013F)), p));
      const V denominator = horner(d, u, hn::Add(u, hn::Set(d, T(9.69402266264F))), q);
      // The exponent, up to 152, needs more digits than a float has: the rounding error of u * u is
      // kept, and the integer part is subtracted before the product is rounded.
      const V minus_k = hn::Set(d, T(-0.721347510815F));
      const V square = hn::Mul(u, u);
      const V lost = math::fused(d, u, u, hn::Neg(square));
      const V whole = hn::Set(d, T(0x1.8p23F));  // adding it leaves an integer in the last bits
      const V power = hn::Sub(hn::MulAdd(square, minus_k, whole), whole);
      const V part = hn::MulAdd(lost, minus_k, math::fused(d, square, minus_k, hn::Neg(power)));
      // 2^part for |part| <= 1/2 by a minimax fit with error 1.9e-9.
      constexpr T two_to[] = {1.0F,
                              0.693147205737F,
                              0.240226468906F,
                              0.0555032877711F,
                              0.00961848895633F,
                              0.00133999311772F};
      const V factor = horner(d, part, hn::Set(d, T(0.000153458121613F)), two_to);
      const V tail = math::scale(d, hn::Mul(hn::Div(numerator, denominator), factor), power);
      return hn::Sub(hn::Max(hn::Zero(d), x), tail);  // NaN propagates through the tail
    }
  }

 private:
  /// Returns (... (start x + c[n - 1]) x + ...) x + c[0].
  template <int n, class D, class V, class T>
  static HWY_INLINE V horner(D d, V x, V start, const T (&c)[n]) {
    V sum = start;
#pragma GCC unroll 8
    for (int i = n - 1; i >= 0; --i) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
    return sum;
  }
};

}  // namespace rung::elementwise_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
