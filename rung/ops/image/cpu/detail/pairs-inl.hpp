// SPDX-License-Identifier: Apache-2.0
// Sums of products of i16 in i32, two products per lane and instruction. Inputs are interleaved
// within 16-byte blocks and results narrowed in the same order, so that lanes keep their positions.
// A WideSums has two vectors of i32; each addition is two multiply-adds and two interleaves.
#if defined(RUNG_OPS_IMAGE_CPU_PAIRS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_IMAGE_CPU_PAIRS_INL_HPP_
#undef RUNG_OPS_IMAGE_CPU_PAIRS_INL_HPP_
#else
#define RUNG_OPS_IMAGE_CPU_PAIRS_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace rung::image_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<std::uint16_t> du16;
constexpr hn::ScalableTag<std::int16_t> di16;
constexpr hn::ScalableTag<std::int32_t> di32;
constexpr hn::ScalableTag<float> df;
constexpr hn::Rebind<std::uint8_t, decltype(du16)> du8;  // half a vector; as many lanes as du16
using U16 = hn::Vec<decltype(du16)>;
using I16 = hn::Vec<decltype(di16)>;
using I32 = hn::Vec<decltype(di32)>;

HWY_INLINE U16 load_bytes(const std::uint8_t* from) {
  return hn::PromoteTo(du16, hn::LoadU(du8, from));
}
/// Clamps values to [0, 255] and stores them as bytes.
HWY_INLINE void store_bytes(I16 values, std::uint8_t* to) {
  hn::StoreU(hn::DemoteTo(du8, values), du8, to);
}

/// Two weights, one per vector of a pair, broadcast to every lane.
struct PairOfWeights {
#if HWY_TARGET == HWY_SCALAR
  I32 one, other;
  PairOfWeights() = default;
  HWY_INLINE PairOfWeights(std::int32_t a, std::int32_t b)
      : one(hn::Set(di32, a)), other(hn::Set(di32, b)) {}
#else
  I16 both;
  PairOfWeights() = default;
  HWY_INLINE PairOfWeights(std::int32_t a, std::int32_t b) {
    const std::uint32_t bits =
        (static_cast<std::uint32_t>(a) & 0xffffU) | static_cast<std::uint32_t>(b) << 16;
    both = hn::BitCast(di16, hn::Set(di32, static_cast<std::int32_t>(bits)));
  }
#endif
};

/// Sums in i32, one per lane of a vector of i16.
class WideSums {
 public:
  explicit HWY_INLINE WideSums(std::int32_t value) : low_(hn::Set(di32, value)), high_(low_) {}

#if HWY_TARGET == HWY_SCALAR
  HWY_INLINE void add(I16 a, I16 b, const PairOfWeights& weights) {
    low_ = hn::Add(low_, hn::Mul(hn::PromoteTo(di32, a), weights.one));
    low_ = hn::Add(low_, hn::Mul(hn::PromoteTo(di32, b), weights.other));
  }
  HWY_INLINE void add_squares(I16 a, I16 b) {
    const I32 wide_a = hn::PromoteTo(di32, a);
    const I32 wide_b = hn::PromoteTo(di32, b);
    low_ = hn::Add(low_, hn::Add(hn::Mul(wide_a, wide_a), hn::Mul(wide_b, wide_b)));
  }
  HWY_INLINE void add(U16 v) { low_ = hn::Add(low_, hn::PromoteTo(di32, v)); }
  /// Returns f(sum) for every sum, narrowed to i16.
  template <class F>
  HWY_INLINE I16 narrow(const F& f) const {
    return hn::DemoteTo(di16, f(low_));
  }
#else
  HWY_INLINE void add(I16 a, I16 b, const PairOfWeights& weights) {
    low_ = add_pairs(low_, hn::InterleaveLower(di16, a, b), weights.both);
    high_ = add_pairs(high_, hn::InterleaveUpper(di16, a, b), weights.both);
  }
  HWY_INLINE void add_squares(I16 a, I16 b) {
    const I16 low = hn::InterleaveLower(di16, a, b);
    const I16 high = hn::InterleaveUpper(di16, a, b);
    low_ = add_pairs(low_, low, low);
    high_ = add_pairs(high_, high, high);
  }
  HWY_INLINE void add(U16 v) {
    const U16 zero = hn::Zero(du16);
    low_ = hn::Add(low_, hn::BitCast(di32, hn::InterleaveLower(du16, v, zero)));
    high_ = hn::Add(high_, hn::BitCast(di32, hn::InterleaveUpper(du16, v, zero)));
  }
  template <class F>
  HWY_INLINE I16 narrow(const F& f) const {
    return hn::ReorderDemote2To(di16, f(low_), f(high_));
  }
#endif
  template <int shift>
  HWY_INLINE I16 shifted() const {
    return narrow([](I32 sums) HWY_ATTR { return hn::ShiftRight<shift>(sums); });
  }

 private:
#if HWY_TARGET != HWY_SCALAR
  static HWY_INLINE I32 add_pairs(I32 sum, I16 a, I16 b) {
    I32 odd = hn::Zero(di32);
    const I32 even = hn::ReorderWidenMulAccumulate(di32, a, b, sum, odd);
    return hn::RearrangeToOddPlusEven(even, odd);
  }
#endif

  I32 low_, high_;
};

}  // namespace rung::image_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
