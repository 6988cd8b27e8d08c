// SPDX-License-Identifier: Apache-2.0
//
// LaneScan: inclusive scan of the lanes of one vector in log2(lanes) steps; each combines every
// lane with the lane 1, 2, 4 ... before it [Kogge & Stone 1973; Hillis & Steele 1986].
//
// Shapes   vectors of 32 or 64 bytes (HWY_MAX_BYTES > 16), lanes of 1, 2, 4 or 8 bytes.
// Cost     a step within 128-bit blocks is a shift; a step across blocks is a permutation that
//          broadcasts a block's last lane. The index tables occupy about ten registers: construct
//          the object outside the loop.
#if defined(RUNG_CPU_LANE_SCAN_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_LANE_SCAN_INL_HPP_
#undef RUNG_CPU_LANE_SCAN_INL_HPP_
#else
#define RUNG_CPU_LANE_SCAN_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#if HWY_MAX_BYTES > 16
HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Scan of vectors of L. Combine is a default-constructible functor, combine(d, a, b).
/// `zero_is_identity` saves a mask per step, since shifts insert zeros.
template <class Combine, class L, bool zero_is_identity>
class LaneScan {
 public:
  using D = hn::ScalableTag<L>;
  using V = hn::Vec<D>;
  static constexpr int lanes = HWY_MAX_BYTES / static_cast<int>(sizeof(L));
  static constexpr int blocks = HWY_MAX_BYTES / 16;

  LaneScan() {
    alignas(64) Index at[words] = {};
    alignas(64) L number[lanes];
    alignas(64) L number_in_block[lanes];
    for (int i = 0; i < lanes; ++i) {
      number[i] = static_cast<L>(i);
      number_in_block[i] = static_cast<L>(i % in_block_lanes);
    }
    const D d;
    const V index = hn::Load(d, number);
    const V in_block = hn::Load(d, number_in_block);
    for (int step = 0; step < inner_steps; ++step) {
      inner_[step] = hn::Gt(in_block, hn::Set(d, static_cast<L>((1 << step) - 1)));
    }
    for (int step = 0; step < outer_steps; ++step) {
      const int distance = 1 << step;
      for (int i = 0; i < words; ++i) {
        const int block = i / block_words - distance;
        // Words are lanes of 4 or 8 bytes; smaller lanes were broadcast within their block before.
        at[i] = block < 0 ? 0 : block * block_words + block_words - 1;
      }
      outer_[step] = hn::SetTableIndices(dw, at);
      outer_mask_[step] = hn::Gt(index, hn::Set(d, static_cast<L>((in_block_lanes << step) - 1)));
    }
    for (int i = 0; i < words; ++i) at[i] = words - 1;
    last_ = hn::SetTableIndices(dw, at);
    for (int i = 0; i < words; ++i) {
      at[i] = small ? std::max(i - block_words, 0) : std::max(i - 1, 0);
    }
    before_ = hn::SetTableIndices(dw, at);
    first_ = hn::Eq(index, hn::Zero(d));
  }

  /// Returns the combination of lanes 0 to i of v in lane i.
  HWY_INLINE V scan(V v) const {
    const D d;
    v = inner<1>(v, 0);
    if constexpr (in_block_lanes > 2) v = inner<2>(v, 1);
    if constexpr (in_block_lanes > 4) v = inner<4>(v, 2);
    if constexpr (in_block_lanes > 8) v = inner<8>(v, 3);
#pragma GCC unroll 2
    for (int step = 0; step < outer_steps; ++step) {
      const V carried = look_up(spread_last(v), outer_[step]);
      if constexpr (zero_is_identity) {
        v = hn::Add(v, hn::IfThenElseZero(outer_mask_[step], carried));
      } else {
        v = hn::IfThenElse(outer_mask_[step], Combine()(d, carried, v), v);
      }
    }
    return v;
  }

  /// Broadcasts the last lane.
  HWY_INLINE V last(V v) const { return look_up(spread_last(v), last_); }

  /// Returns the exclusive scan: carry in lane 0, carry combined with scanned lane i - 1 in lane i.
  HWY_INLINE V exclusive(V carry, V scanned) const {
    const D d;
    V moved;
    if constexpr (small) {
      const hn::Repartition<std::uint8_t, D> bytes;
      const auto before = hn::BitCast(bytes, look_up(scanned, before_));
      moved = hn::BitCast(d, hn::CombineShiftRightBytes<16 - sizeof(L)>(
                                 bytes, hn::BitCast(bytes, scanned), before));
    } else {
      moved = look_up(scanned, before_);
    }
    return hn::IfThenElse(first_, carry, Combine()(d, carry, moved));
  }

 private:
  static constexpr bool small = sizeof(L) < 4;
  static constexpr int in_block_lanes = 16 / static_cast<int>(sizeof(L));
  static constexpr int inner_steps = small ? (sizeof(L) == 1 ? 4 : 3) : (sizeof(L) == 4 ? 2 : 1);
  static constexpr int outer_steps = blocks == 4 ? 2 : blocks == 2 ? 1 : 0;
  // Permutations across blocks move 4 or 8 bytes.
  using Word = std::conditional_t<small, std::uint32_t, L>;
  using DW = hn::ScalableTag<Word>;
  static constexpr DW dw{};
  static constexpr int words = HWY_MAX_BYTES / static_cast<int>(sizeof(Word));
  static constexpr int block_words = 16 / static_cast<int>(sizeof(Word));
  using Index = std::conditional_t<sizeof(Word) == 8, std::int64_t, std::int32_t>;
  using Table = decltype(hn::SetTableIndices(DW(), static_cast<const Index*>(nullptr)));
  using Mask = hn::Mask<D>;

  template <int distance>
  HWY_INLINE V inner(V v, int step) const {
    const D d;
    const V moved = hn::ShiftLeftLanes<distance>(d, v);  // zeros come in
    if constexpr (zero_is_identity) return hn::Add(v, moved);
    return hn::IfThenElse(inner_[step], Combine()(d, moved, v), v);
  }

  static HWY_INLINE V look_up(V v, Table table) {
    return hn::BitCast(D(), hn::TableLookupLanes(hn::BitCast(dw, v), table));
  }

  /// Broadcasts the last lane of each block within it, for lanes smaller than a word.
  static HWY_INLINE V spread_last(V v) {
    if constexpr (small) {
      const hn::Repartition<std::uint8_t, D> bytes;
      const auto pick = hn::BitCast(
          bytes, hn::Set(hn::Repartition<std::uint16_t, D>(), sizeof(L) == 1 ? 0x0f0f : 0x0f0e));
      return hn::BitCast(D(), hn::TableLookupBytes(hn::BitCast(bytes, v), pick));
    } else {
      return v;
    }
  }

  Mask inner_[inner_steps];
  Table outer_[outer_steps > 0 ? outer_steps : 1];
  Mask outer_mask_[outer_steps > 0 ? outer_steps : 1];
  Table last_;
  Table before_;
  Mask first_;
};

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // the guard flips with each target
