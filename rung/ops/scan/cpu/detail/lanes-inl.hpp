// SPDX-License-Identifier: Apache-2.0
//
// The scan of the lanes of one vector: log2(lanes) steps, each of which combines every lane with
// one that lies 1, 2, 4 ... before [Kogge & Stone 1973; Hillis & Steele 1986]. Within blocks of 128
// bits a shift does it; across blocks a permutation carries each block's last lane to all lanes of
// a later one.
#if defined(RUNG_OPS_SCAN_CPU_LANES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_SCAN_CPU_LANES_INL_HPP_
#undef RUNG_OPS_SCAN_CPU_LANES_INL_HPP_
#else
#define RUNG_OPS_SCAN_CPU_LANES_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rung/ops/scan/op/operations.hpp"

// Vectors of one block or less have no use for this.
#if HWY_MAX_BYTES > 16
HWY_BEFORE_NAMESPACE();
namespace rung::scan_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// The operations on vectors. NaN as in scan_operations.hpp; the hardware's minimum and maximum
/// give their second operand where one is NaN.
template <class Operation, class D, class V>
HWY_INLINE V combine(Operation, D, V a, V b) {
  using L = hn::TFromD<D>;
  if constexpr (std::is_same_v<Operation, ScanSum>) {
    return hn::Add(a, b);
  } else if constexpr (std::is_same_v<Operation, ScanProduct>) {
    return hn::Mul(a, b);
  } else {
    V best;
    if constexpr (std::is_same_v<Operation, ScanMin>) {
      best = hn::Min(a, b);
    } else {
      best = hn::Max(a, b);
    }
    if constexpr (std::is_floating_point_v<L>) return hn::IfThenElse(hn::IsNaN(a), a, best);
    return best;
  }
}

template <class Operation, class L>
class LaneScan {
 public:
  using D = hn::ScalableTag<L>;
  using V = hn::Vec<D>;
  static constexpr int lanes = HWY_MAX_BYTES / static_cast<int>(sizeof(L));
  static constexpr int blocks = HWY_MAX_BYTES / 16;
  static constexpr bool sums = std::is_same_v<Operation, ScanSum>;

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
        // Words are lanes of 4 or 8 bytes; of smaller ones the last lane fills its block first.
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

  /// Lane i: lanes 0 to i of v combined.
  HWY_INLINE V scan(V v) const {
    const D d;
    v = inner<1>(v, 0);
    if constexpr (in_block_lanes > 2) v = inner<2>(v, 1);
    if constexpr (in_block_lanes > 4) v = inner<4>(v, 2);
    if constexpr (in_block_lanes > 8) v = inner<8>(v, 3);
#pragma GCC unroll 2
    for (int step = 0; step < outer_steps; ++step) {
      const V carried = look_up(spread_last(v), outer_[step]);
      if constexpr (sums) {
        v = hn::Add(v, hn::IfThenElseZero(outer_mask_[step], carried));
      } else {
        v = hn::IfThenElse(outer_mask_[step], combine(Operation(), d, carried, v), v);
      }
    }
    return v;
  }

  /// The last lane in all lanes.
  HWY_INLINE V last(V v) const { return look_up(spread_last(v), last_); }

  /// carry + (the lanes of a scan, one place up): what an exclusive scan shows.
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
    return hn::IfThenElse(first_, carry, combine(Operation(), d, carry, moved));
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
    if constexpr (sums) return hn::Add(v, moved);
    return hn::IfThenElse(inner_[step], combine(Operation(), d, moved, v), v);
  }

  static HWY_INLINE V look_up(V v, Table table) {
    return hn::BitCast(D(), hn::TableLookupLanes(hn::BitCast(dw, v), table));
  }

  /// Of small lanes: the last of each block in all of it, so that any word of it will do.
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

}  // namespace
}  // namespace rung::scan_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // the guard flips with each target
