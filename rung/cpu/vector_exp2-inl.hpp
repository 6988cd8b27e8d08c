// SPDX-License-Identifier: Apache-2.0
//
// Powers of 2 of vectors: the exponential of softmax, loss and attention, which fold log2(e) into
// their scale.
//
// 2^t = 2^n p(t - n), where n is the integer nearest to t and p is the polynomial on [-1/2, 1/2]
// with p(0) = 1 and minimax relative error (Remez exchange): 9.2e-8 for f32 (degree 5: 0.8 ulp, 1.9
// ulp with evaluation error), 3.4e-18 for f64 (degree 11). Below the smallest normal number the
// result is 0 or a subnormal; NaN stays NaN; -infinity gives 0.
#if defined(RUNG_CPU_VECTOR_EXP2_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_VECTOR_EXP2_INL_HPP_
#undef RUNG_CPU_VECTOR_EXP2_INL_HPP_
#else
#define RUNG_CPU_VECTOR_EXP2_INL_HPP_
#endif

#include <hwy/highway.h>

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Exp2;
template <>
struct Exp2<float> {
  static constexpr float p[] = {1.0F,          0.693147004F,   0.240222424F,
                                0.0555073358F, 0.00967151299F, 0.00132647273F};
  static constexpr float round = 0x1.8p23F;  // adding it leaves the rounded integer in the low bits
  static constexpr float lowest = -126.0F;   // smaller powers are not normal numbers
  static constexpr float highest = 128.0F;   // 2^t is infinite
  static constexpr int mantissa = 23;
  static constexpr std::int32_t bias = 127;
};
template <>
struct Exp2<double> {
  static constexpr double p[] = {1.0,
                                 0.69314718055994529,
                                 0.2402265069591013,
                                 0.055504108664820084,
                                 0.0096181291075941207,
                                 0.001333355814677462,
                                 0.00015403530457112091,
                                 1.5252733493127489e-05,
                                 1.3215435282308488e-06,
                                 1.0178199571842138e-07,
                                 7.0737832485031337e-09,
                                 4.4347712982003769e-10};
  static constexpr double round = 0x1.8p52;
  static constexpr double lowest = -1022.0;
  static constexpr double highest = 1024.0;
  static constexpr int mantissa = 52;
  static constexpr std::int64_t bias = 1023;
};

template <class T>
inline constexpr T log2_e = T(1.44269504088896340736L);

template <class D, class V>
HWY_INLINE V power_polynomial(D d, V f) {
  using T = hn::TFromD<D>;
  constexpr int degree = static_cast<int>(std::size(Exp2<T>::p)) - 1;
  V sum = hn::Set(d, Exp2<T>::p[degree]);
#pragma GCC unroll 12
  for (int i = degree - 1; i >= 0; --i) sum = hn::MulAdd(sum, f, hn::Set(d, Exp2<T>::p[i]));
  return sum;
}

/// Returns 2^t for t <= 0 or NaN; with `any_sign` for every t.
template <bool any_sign, class D, class V>
HWY_INLINE V exp2(D d, V t) {
  using T = hn::TFromD<D>;
#if HWY_TARGET <= HWY_AVX3
  // AVX-512 has instructions for the fraction and for scaling by a power of 2, correct for every t:
  // the fraction of an infinity is 0, and a power out of range gives 0 or infinity.
  constexpr int to_nearest = 8;  // rounding mode, without exceptions
  if constexpr (std::is_same_v<T, float>) {
    const V f{_mm512_reduce_ps(t.raw, to_nearest)};
    return V{_mm512_scalef_ps(power_polynomial(d, f).raw, hn::Sub(t, f).raw)};
  } else {
    const V f{_mm512_reduce_pd(t.raw, to_nearest)};
    return V{_mm512_scalef_pd(power_polynomial(d, f).raw, hn::Sub(t, f).raw)};
  }
#else
  const V low = hn::Set(d, Exp2<T>::lowest);
  const auto vanishes = hn::Lt(t, low);
  t = hn::IfThenElse(vanishes, low, t);
  if constexpr (any_sign) {
    const V high = hn::Set(d, Exp2<T>::highest);
    t = hn::IfThenElse(hn::Gt(t, high), high, t);
  }
  const V magic = hn::Set(d, Exp2<T>::round);
  const V rounded = hn::Add(t, magic);
  const V p = power_polynomial(d, hn::Sub(t, hn::Sub(rounded, magic)));
  // Multiplies instead of adding to the exponent bits: the product with NaN is NaN for any power.
  const hn::RebindToSigned<D> integers;
  const auto exponent = hn::Add(hn::BitCast(integers, rounded), hn::Set(integers, Exp2<T>::bias));
  const V power = hn::BitCast(d, hn::ShiftLeft<Exp2<T>::mantissa>(exponent));
  return hn::IfThenZeroElse(vanishes, hn::Mul(p, power));
#endif
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
