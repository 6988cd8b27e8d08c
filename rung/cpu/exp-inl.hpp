// SPDX-License-Identifier: Apache-2.0
//
// e^x of vectors of f32 and f64, and its parts, for functions derived from it.
//
//   exp_of(d, x)          e^x for every x, NaN and infinities included; error below 4 ulp
//   exp_parts(d, x)       power and expm1 with e^x = 2^power (1 + expm1); x within the range
//   scaled_exp<k>(d, x)   scale and expm1 with e^(k x) = scale (1 + expm1), k being +-1 or +-2
//   scale(d, v, power)    2^power v
//   clamp_keeping_nan, at_most_keeping_nan, fused (one rounding on every target)
//
// Cost: a polynomial of degree 6 (f32) or 11 (f64), some 12 or 18 instructions in one chain.
#if defined(RUNG_CPU_EXP_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_EXP_INL_HPP_
#undef RUNG_CPU_EXP_INL_HPP_
#else
#define RUNG_CPU_EXP_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <iterator>

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Returns x y + w with one rounding on every target; without an FMA instruction by std::fma.
template <class D, class V>
HWY_INLINE V fused(D d, V x, V y, V w) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulAdd(x, y, w);
#else
  using T = hn::TFromD<D>;
  HWY_ALIGN T a[hn::MaxLanes(D())];
  HWY_ALIGN T b[hn::MaxLanes(D())];
  HWY_ALIGN T c[hn::MaxLanes(D())];
  hn::Store(x, d, a);
  hn::Store(y, d, b);
  hn::Store(w, d, c);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) c[i] = std::fma(a[i], b[i], c[i]);
  return hn::Load(d, c);
#endif
}

/// Clamps x to the bounds, propagating NaN: x86's minimum returns its second operand if either is
/// NaN.
template <class D, class V>
HWY_INLINE V clamp_keeping_nan(D d, V x, float low_bound, float high_bound) {
  const V low = hn::Set(d, low_bound);
  const V high = hn::Set(d, high_bound);
#if HWY_TARGET <= HWY_AVX2
  return hn::Min(high, hn::Max(low, x));
#else
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Min(high, hn::Max(low, x)));
#endif
}

/// Clamps x from above only, propagating NaN.
template <class D, class V>
HWY_INLINE V at_most_keeping_nan(D d, V x, float high_bound) {
  const V high = hn::Set(d, high_bound);
#if HWY_TARGET <= HWY_AVX2
  return hn::Min(high, x);
#else
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Min(high, x));
#endif
}

/// Constants of e^x: log 2 in two parts, of which the first is so short that its product with any
/// power in range is exact, and minimax fits of (e^r - 1 - r) / r^2 for |r| <= log(2) / 2, which
/// give e^r with errors of 3.1e-9 and 3.6e-18.
template <class T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr float log2_e = 1.44269504F;
  static constexpr float log_2[] = {0.693145752F, 1.42860677e-6F};
  static constexpr float q[] = {0.499999934476F, 0.166665206294F, 0.0416683880927F,
                                0.00836871709086F, 0.00138145963824F};
  static constexpr float lowest = -104;  // e^x is 0 below `lowest` and infinite above `highest`
  static constexpr float highest = 89;
  static constexpr int mantissa_bits = 23;
  static constexpr int exponent_bias = 127;
};
template <>
struct ExpConstants<double> {
  static constexpr double log2_e = 1.4426950408889634;
  static constexpr double log_2[] = {0.6931471805598903, 5.497923018708371e-14};
  static constexpr double q[] = {0.50000000000000106265,     0.1666666666666641242,
                                 0.04166666666653016534,     0.0083333333334945312308,
                                 0.0013888888943628080239,   0.00019841269506423490474,
                                 0.000024801493101224954707, 2.7557586514634935687e-6,
                                 2.7630247495582826309e-7,   2.5000016729009892541e-8};
  static constexpr float lowest = -746;
  static constexpr float highest = 710;
  static constexpr int mantissa_bits = 52;
  static constexpr int exponent_bias = 1023;
};

/// Parts of e^x = 2^power (1 + expm1), where x = power log 2 + r with |r| <= log(2) / 2.
template <class V>
struct ExpParts {
  V power;
  V expm1;
};

template <class D, class V>
HWY_INLINE ExpParts<V> exp_parts(D d, V x) {
  using Constants = ExpConstants<hn::TFromD<D>>;
  constexpr int terms = static_cast<int>(std::size(Constants::q));
  const V power = hn::Round(hn::Mul(x, hn::Set(d, Constants::log2_e)));
  V r = hn::NegMulAdd(power, hn::Set(d, Constants::log_2[0]), x);
  r = hn::NegMulAdd(power, hn::Set(d, Constants::log_2[1]), r);
  V q = hn::Set(d, Constants::q[terms - 1]);
#pragma GCC unroll 16
  for (int i = terms - 2; i >= 0; --i) q = hn::MulAdd(q, r, hn::Set(d, Constants::q[i]));
  return {power, hn::MulAdd(hn::Mul(q, r), r, r)};
}

/// Returns 2^power for integer powers in the range of normal numbers.
template <class D, class V>
HWY_INLINE V power_of_two(D d, V power) {
  using Constants = ExpConstants<hn::TFromD<D>>;
  const hn::RebindToSigned<D> di;
  const auto exponent = hn::Add(hn::ConvertTo(di, power), hn::Set(di, Constants::exponent_bias));
  return hn::BitCast(d, hn::ShiftLeft<Constants::mantissa_bits>(exponent));
}

/// e^(factor x) as scale (1 + expm1), for tanh and sigmoid: a factor of 2 or -1 is folded into the
/// constants. |factor x| must be below 128.5 log 2 (1024.5 log 2 in f64); from 127.5 log 2 (1023.5
/// log 2) on, the scale is infinite. Adding 1.5 * 2^23 rounds to an integer and leaves it in the
/// low bits, which a shift makes a power of two: two instructions fewer than rounding and
/// converting.
template <class V>
struct ScaledExp {
  V scale;
  V expm1;
};

template <int factor, class D, class V>
HWY_INLINE ScaledExp<V> scaled_exp(D d, V x) {
  using T = hn::TFromD<D>;
  using Constants = ExpConstants<T>;
  constexpr int terms = static_cast<int>(std::size(Constants::q));
  constexpr T whole =
      T(3) * T(std::uint64_t{1} << (Constants::mantissa_bits - 1)) + T(Constants::exponent_bias);
  const V shifted = hn::MulAdd(x, hn::Set(d, factor * Constants::log2_e), hn::Set(d, whole));
  const V power = hn::Sub(shifted, hn::Set(d, whole));
  V r = hn::NegMulAdd(power, hn::Set(d, Constants::log_2[0] / factor), x);
  r = hn::NegMulAdd(power, hn::Set(d, Constants::log_2[1] / factor), r);
  const auto coefficient = [&](int i) {
    T value = Constants::q[i];
    for (int n = 0; n < i + 2; ++n) value *= factor;
    return hn::Set(d, value);
  };
  V q = coefficient(terms - 1);
#pragma GCC unroll 16
  for (int i = terms - 2; i >= 0; --i) q = hn::MulAdd(q, r, coefficient(i));
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::ShiftLeft<Constants::mantissa_bits>(hn::BitCast(du, shifted));
  return {hn::BitCast(d, bits), hn::Mul(r, hn::MulAdd(q, r, hn::Set(d, T(factor))))};
}

/// Returns 2^power value, with correct infinities and subnormal numbers. Propagates NaN in `value`,
/// and on AVX-512, which has an instruction for this function, also NaN in `power`.
template <class D, class V>
HWY_INLINE V scale([[maybe_unused]] D d, V value, V power) {
  using T = hn::TFromD<D>;
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(T) == 4) {
    return V{_mm512_scalef_ps(value.raw, power.raw)};
  } else {
    return V{_mm512_scalef_pd(value.raw, power.raw)};
  }
#else
  // In two steps, since 2^power may be outside the range of normal numbers.
  const V half = hn::Floor(hn::Mul(power, hn::Set(d, T(0.5))));
  return hn::Mul(hn::Mul(value, power_of_two(d, half)), power_of_two(d, hn::Sub(power, half)));
#endif
}

template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  using Constants = ExpConstants<hn::TFromD<D>>;
  // Results outside this range are infinite or zero; an infinite x would give NaN.
  const V inside = clamp_keeping_nan(d, x, Constants::lowest, Constants::highest);
  const ExpParts<V> parts = exp_parts(d, inside);
  return scale(d, hn::Add(hn::Set(d, 1), parts.expm1), parts.power);
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
