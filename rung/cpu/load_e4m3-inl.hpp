// SPDX-License-Identifier: Apache-2.0
//
// Loads of e4m3 elements as vectors of f32.
#if defined(RUNG_CPU_LOAD_E4M3_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_LOAD_E4M3_INL_HPP_
#undef RUNG_CPU_LOAD_E4M3_INL_HPP_
#else
#define RUNG_CPU_LOAD_E4M3_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "rung/core/dtype.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Loads Lanes(d) elements as floats, exactly. Subnormals of e4m3 are normal floats, found as
/// 2^-6 (1 + m / 8) - 2^-6: multiplying a subnormal float would cost an assist of the CPU.
template <class D>
HWY_INLINE hn::Vec<D> load_e4m3(D d, const e4m3* from) {
  const hn::RebindToUnsigned<D> integers;
  const hn::Rebind<std::uint8_t, D> bytes;
  const auto bits =
      hn::PromoteTo(integers, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from)));
  const auto magnitude = hn::And(bits, hn::Set(integers, 0x7f));
  const auto sign = hn::ShiftLeft<24>(hn::Xor(bits, magnitude));
  const auto aligned = hn::ShiftLeft<20>(magnitude);
  const auto with_exponent = [&](std::uint32_t exponent) {
    return hn::BitCast(d, hn::Add(aligned, hn::Set(integers, exponent << 23)));
  };
  const auto normal = with_exponent(127 - 7);
  const auto subnormal = hn::Sub(with_exponent(127 - 6), hn::Set(d, 0x1p-6F));
  const auto is_subnormal = hn::Lt(magnitude, hn::Set(integers, 8));
  const auto is_nan = hn::Eq(magnitude, hn::Set(integers, 0x7f));
  const auto number = hn::IfThenElse(hn::RebindMask(d, is_subnormal), subnormal, normal);
  const auto value = hn::IfThenElse(hn::RebindMask(d, is_nan), hn::NaN(d), number);
  return hn::Or(value, hn::BitCast(d, sign));
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
