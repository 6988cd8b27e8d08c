// SPDX-License-Identifier: Apache-2.0
// Look-back with a fixed order: what lies before a tile, from what the tiles before it publish.
//
// Merrill and Garland's look-back adds up aggregates until it meets an inclusive prefix; where that
// is depends on timing, and so do the bits of a sum of floats. Here the tiles of a line are the
// leaves of a tree of degree 32, and each prefix is combined from the same nodes every time:
//
//   before tile t = carry(t / 1024) + groups before it in its 1024 + tiles before it in its 32
//
// A tile publishes its total; the last of 32 also that of the group, the last of 1024 also the
// carry into the next 1024. Each sum of up to 31 is one load a lane and a reduction of a warp. Only
// the carries form a chain, one step in 1024 tiles (8 to 32 MiB): it runs ahead of the data.
//
// Values are published together with a tag that says so, in one piece: 8 bytes for states of up to
// 4, else pieces of 16, each with its own tag. No fence is needed, and states may be of any size.
#pragma once

#include <type_traits>

#include "rung/device/ptx_memory.hpp"
#include "rung/ops/scan/cuda/detail/tile.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

/// A state as it is published.
template <class S>
struct Published {
  static_assert(std::is_trivially_copyable_v<S>, "states travel as bits");
  static constexpr bool small = sizeof(S) <= 4;
  using Half = std::conditional_t<small, std::uint32_t, std::uint64_t>;
  struct alignas(2 * sizeof(Half)) Piece {
    Half value;
    Half tag;  // 0 before
  };
  static constexpr int pieces = static_cast<int>((sizeof(S) + sizeof(Half) - 1) / sizeof(Half));
  struct Bits {
    Half at[pieces];
  };
  Piece piece[pieces];

  __device__ __forceinline__ void publish(const S& state) {
    Bits bits{};
    __builtin_memcpy(&bits, &state, sizeof(S));
#pragma unroll
    for (int i = 0; i < pieces; ++i) ptx::store_relaxed(piece + i, Piece{bits.at[i], 1});
  }
  /// Whether all of it is there. `state` is what was seen, of no meaning before: without a branch,
  /// so that several looks may be under way at once.
  [[nodiscard]] __device__ __forceinline__ bool look(S& state) const {
    Bits bits;
    bool there = true;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      const Piece seen = ptx::load_relaxed(piece + i);
      bits.at[i] = seen.value;
      there = there && seen.tag != 0;
    }
    __builtin_memcpy(&state, &bits, sizeof(S));
    return there;
  }
};

/// The nodes of all lines, one level after the other.
template <class S>
struct Tree {
  Published<S>* nodes;
  std::int64_t tiles;  // a line
  std::int64_t lines;

  [[nodiscard]] RUNG_HD static std::int64_t up(std::int64_t count) { return (count + 31) / 32; }
  [[nodiscard]] RUNG_HD std::int64_t groups() const { return up(tiles); }
  [[nodiscard]] RUNG_HD std::int64_t carries() const { return up(groups()) + 1; }
  [[nodiscard]] RUNG_HD std::int64_t size() const { return lines * (tiles + groups() + carries()); }
  [[nodiscard]] RUNG_HD Published<S>* tile(std::int64_t line, std::int64_t i) const {
    return nodes + line * tiles + i;
  }
  [[nodiscard]] RUNG_HD Published<S>* group(std::int64_t line, std::int64_t i) const {
    return nodes + lines * tiles + line * groups() + i;
  }
  [[nodiscard]] RUNG_HD Published<S>* carry(std::int64_t line, std::int64_t i) const {
    return nodes + lines * (tiles + groups()) + line * carries() + i;
  }
};

/// One node a lane, waited for together. Lanes from `count` on have none and give the identity.
template <class Policy, class S = typename Policy::State>
class Watch {
 public:
  /// Looks once.
  __device__ __forceinline__ Watch(const Policy& policy, const Published<S>* nodes, int count)
      : node_(nodes + lane_of_thread()),
        value_(policy.identity),
        there_(lane_of_thread() >= count) {
    if (!there_) there_ = node_->look(value_);
  }
  /// Looks until all are there; their values in the order of lanes, combined, to every lane.
  __device__ __forceinline__ S wait(const Policy& policy) {
    while (!__all_sync(all_lanes, there_ ? 1 : 0)) {
      ptx::nanosleep(40);
      if (!there_) there_ = node_->look(value_);
    }
    return warp_reduce(value_, [&](const S& a, const S& b) { return policy.combine(a, b); });
  }

 private:
  const Published<S>* node_;
  S value_;
  bool there_;
};

/// Publishes the total of a tile, and gives every lane what lies before it. By one whole warp.
template <class Policy, class S = typename Policy::State>
__device__ __forceinline__ S look_back(const Policy& policy, const Tree<S>& tree, std::int64_t line,
                                       int tile, const S& total) {
  const auto combine = [&](const S& a, const S& b) { return policy.combine(a, b); };
  const int lane = lane_of_thread();
  const int group = tile / 32;
  const int thousand = group / 32;
  const int tiles_before = tile % 32;
  const int groups_before = group % 32;
  if (lane == 0) tree.tile(line, tile)->publish(total);
  if (tile == 0) return policy.identity;
  Watch<Policy> tiles(policy, tree.tile(line, tile - tiles_before), tiles_before);
  Watch<Policy> groups(policy, tree.group(line, group - groups_before), groups_before);
  Watch<Policy> carries(policy, tree.carry(line, thousand), thousand > 0 ? 1 : 0);
  const S before = tiles.wait(policy);
  // The group's total before anything else is waited for: others wait for it.
  const S group_total = combine(before, total);
  const bool last_of_group = tiles_before == 31;
  if (last_of_group && lane == 0) tree.group(line, group)->publish(group_total);
  const S in_thousand = groups.wait(policy);
  const S before_group = combine(carries.wait(policy), in_thousand);
  if (last_of_group && groups_before == 31 && lane == 0) {
    tree.carry(line, thousand + 1)->publish(combine(before_group, group_total));
  }
  return combine(before_group, before);
}

}  // namespace rung::inline RUNG_TARGET::scan_cuda
