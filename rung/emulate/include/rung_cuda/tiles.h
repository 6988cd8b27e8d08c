// SPDX-License-Identifier: Apache-2.0
// Cooperative groups within a warp: tiles of constant size, and coalesced lanes.
#pragma once

#include "rung_cuda/groups.h"

namespace cooperative_groups {

/// Base class of groups of lanes. Ranks number the lanes of the mask in ascending order.
class rung_lane_group : public thread_group {
 public:
  rung_lane_group() : thread_group(0, false) {}
  explicit rung_lane_group(unsigned lanes) : thread_group(lanes, false) {}
  unsigned size() const { return static_cast<unsigned>(__popc(lanes_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return static_cast<unsigned>(
        __popc(lanes_ & rung::cuda::lanes_below(rung::simt::lane_index())));
  }
  void sync(RungPlace place = RungPlace::current()) const { __syncwarp(lanes_, place); }

  template <class T>
  T shfl(T value, int rank, RungPlace place = RungPlace::current()) const {
    return pick(value, lane_of(wrapped(rank)), place);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, RungPlace place = RungPlace::current()) const {
    const unsigned rank = thread_rank();
    return pick(value, lane_of(delta <= rank ? rank - delta : rank), place);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, RungPlace place = RungPlace::current()) const {
    const unsigned rank = thread_rank();
    return pick(value, lane_of(rank + delta < size() ? rank + delta : rank), place);
  }
  template <class T>
  T shfl_xor(T value, unsigned bits, RungPlace place = RungPlace::current()) const {
    const unsigned rank = thread_rank();
    return pick(value, lane_of((rank ^ bits) < size() ? rank ^ bits : rank), place);
  }
  int any(int predicate, RungPlace place = RungPlace::current()) const {
    return __any_sync(lanes_, predicate, place);
  }
  int all(int predicate, RungPlace place = RungPlace::current()) const {
    return __all_sync(lanes_, predicate, place);
  }
  unsigned ballot(int predicate, RungPlace place = RungPlace::current()) const {
    return by_rank(__ballot_sync(lanes_, predicate, place));
  }
  template <class T>
  unsigned match_any(T value, RungPlace place = RungPlace::current()) const {
    return by_rank(__match_any_sync(lanes_, value, place));
  }
  template <class T>
  unsigned match_all(T value, int& predicate, RungPlace place = RungPlace::current()) const {
    return by_rank(__match_all_sync(lanes_, value, &predicate, place));
  }

 private:
  unsigned wrapped(int rank) const { return static_cast<unsigned>(rank) % size(); }
  /// Returns the lane that has this rank.
  int lane_of(unsigned rank) const {
    unsigned left = lanes_;
    for (; rank > 0; --rank) left &= left - 1;
    return __ffs(static_cast<int>(left)) - 1;
  }
  /// Compresses a mask of lanes to a mask of ranks.
  unsigned by_rank(unsigned mask) const {
    unsigned moved = 0, rank = 0;
    for (unsigned left = lanes_; left != 0; left &= left - 1, ++rank) {
      if ((mask & left & -left) != 0) moved |= 1u << rank;
    }
    return moved;
  }
  /// Returns the value of another lane, of any size, by shuffles of 8-byte words.
  template <class T>
  T pick(const T& value, int lane, const RungPlace& place) const {
    constexpr size_t words = (sizeof(T) + 7) / 8;
    unsigned long long bits[words] = {};
    __builtin_memcpy(bits, &value, sizeof(T));
    for (unsigned long long& word : bits) {
      word = rung::simt::shuffle(lanes_, word, rung::simt::Shuffle::index, lane, 32, place);
    }
    T result;
    __builtin_memcpy(static_cast<void*>(&result), bits, sizeof(T));
    return result;
  }
};

class coalesced_group : public rung_lane_group {
 public:
  using rung_lane_group::rung_lane_group;
  unsigned meta_group_size() const { return meta_size_; }
  unsigned meta_group_rank() const { return meta_rank_; }
  coalesced_group rung_named(unsigned rank, unsigned size) const {
    coalesced_group named = *this;
    named.meta_rank_ = rank;
    named.meta_size_ = size;
    return named;
  }

 private:
  unsigned meta_rank_ = 0, meta_size_ = 1;
};
inline coalesced_group coalesced_threads(RungPlace place = RungPlace::current()) {
  return coalesced_group(__activemask(place));
}

/// Common parts of tiles of any size.
template <unsigned Size>
class rung_tile_ranks {
  static_assert(Size >= 1 && Size <= 512 && (Size & (Size - 1)) == 0,
                "tiles have 1, 2, 4, 8 ... or 512 threads");

 public:
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned thread_rank() { return rung::cuda::thread_rank() % Size; }
  static unsigned meta_group_size() { return (rung::cuda::block_size() + Size - 1) / Size; }
  static unsigned meta_group_rank() { return rung::cuda::thread_rank() / Size; }
};

template <unsigned Size, class Parent = void, bool InWarp = (Size <= 32)>
class thread_block_tile : public rung_lane_group, public rung_tile_ranks<Size> {
 public:
  using rung_tile_ranks<Size>::size;
  using rung_tile_ranks<Size>::num_threads;
  using rung_tile_ranks<Size>::thread_rank;
  thread_block_tile() : rung_lane_group(lanes()) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) : thread_block_tile() {}

 private:
  static unsigned lanes() {
    const unsigned first = rung::cuda::thread_rank() % 32 / Size * Size;
    const unsigned mask = Size == 32 ? 0xffffffffu : ((1u << (Size % 32)) - 1) << first;
    return mask & rung::cuda::warp_lanes();
  }
};

/// Tiles larger than a warp, each with its own barrier (rung/simt/tile.cpp).
template <unsigned Size, class Parent>
class thread_block_tile<Size, Parent, false> : public rung_tile_ranks<Size> {
 public:
  thread_block_tile() = default;
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>&) {}
  void sync(RungPlace place = RungPlace::current()) const {
    rung::simt::tile_barrier(static_cast<int>(Size), place);
  }
  template <class T>
  T shfl(T value, int rank, RungPlace place = RungPlace::current()) const {
    T result;
    rung::simt::tile_exchange(Size, &value, sizeof(T), {rank % static_cast<int>(Size), 1, 1},
                              &result, place);
    return result;
  }
  int any(int predicate, RungPlace place = RungPlace::current()) const {
    return rung_reduce(predicate != 0 ? 1 : 0, [](int a, int b) { return a | b; }, place);
  }
  int all(int predicate, RungPlace place = RungPlace::current()) const {
    return any(predicate == 0, place) == 0;
  }
  /// Reduces in order of rank: within warps, then across warps.
  template <class T, class Operation>
  T rung_reduce(T value, Operation operation, const RungPlace& place) const {
    const thread_block_tile<32> warp;
    T sum = warp.shfl(value, 0, place);
    const int lanes = __popc(warp.rung_lanes());
    for (int lane = 1; lane < lanes; ++lane) sum = operation(sum, warp.shfl(value, lane, place));
    T sums[Size / 32];
    rung::simt::tile_exchange(Size, &sum, sizeof(T), {0, 32, Size / 32}, sums, place);
    const unsigned threads = rung::cuda::block_size() - this->meta_group_rank() * Size;
    for (unsigned i = 1; i < Size / 32 && 32 * i < threads; ++i)
      sums[0] = operation(sums[0], sums[i]);
    return sums[0];
  }
};

/// Memory that tiles larger than a warp need on a GPU; unused in the simulator.
template <unsigned... Sizes>
struct block_tile_memory {
  char rung_unused[1];
};
template <unsigned... Sizes>
inline thread_block this_thread_block(block_tile_memory<Sizes...>&) {
  return {};
}

template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}
/// Partitions a group into tiles whose size is given at run time.
inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  if (parent.rung_block()) {
    const unsigned first = rung::cuda::thread_rank() % 32 / size * size;
    const unsigned mask = size >= 32 ? 0xffffffffu : ((1u << size) - 1) << first;
    return thread_group(mask & rung::cuda::warp_lanes(), false);
  }
  // Selects the parent's lanes whose ranks are in the caller's tile.
  const unsigned tile = static_cast<unsigned>(parent.thread_rank()) / size;
  unsigned mask = 0, rank = 0;
  for (unsigned left = parent.rung_lanes(); left != 0; left &= left - 1, ++rank) {
    if (rank / size == tile) mask |= left & -left;
  }
  return thread_group(mask, false);
}
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  return coalesced_group(
      tiled_partition(static_cast<const thread_group&>(parent), size).rung_lanes());
}

template <class Group>
inline coalesced_group labeled_partition(const Group& group, int label,
                                         RungPlace place = RungPlace::current()) {
  return coalesced_group(__match_any_sync(group.rung_lanes(), label, place));
}
template <class Group>
inline coalesced_group binary_partition(const Group& group, bool predicate,
                                        RungPlace place = RungPlace::current()) {
  const unsigned yes = __ballot_sync(group.rung_lanes(), predicate, place);
  const unsigned mine = predicate ? yes : group.rung_lanes() & ~yes;
  return coalesced_group(mine).rung_named(predicate ? 1 : 0, 2);
}

template <class Group, class Call, class... Arguments>
inline void invoke_one(const Group& group, Call&& f, Arguments&&... arguments) {
  if (group.thread_rank() == 0) f(static_cast<Arguments&&>(arguments)...);
}

namespace experimental {  // names before CUDA 11.8
using cooperative_groups::block_tile_memory;
using cooperative_groups::this_thread_block;
using cooperative_groups::thread_block_tile;
using cooperative_groups::tiled_partition;
}  // namespace experimental

}  // namespace cooperative_groups
