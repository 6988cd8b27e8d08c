// SPDX-License-Identifier: Apache-2.0
// scan / warp-specialized ring: tile sizes, buffers, and look-back.
//
// The warp roles synchronize through three mbarriers per buffer: full (loaded), ready (prefixes
// known), empty (may be overwritten). Each role sees the tiles of the block in the same order: tile
// i of block b is tile b + i * blocks of all lines.
// Every lane that has written or read arrives by itself. A single arrival per warp after a
// __syncwarp() would be correct and is no faster (2^28 floats on an H200: 4050 GB/s against 4053),
// but compute-sanitizer reports it as a race.
//
// Every block computes all prefixes itself: it reads the totals of all tiles, in groups of fixed
// size. carry(g + 1) = carry(g) + group g, and before tile t = carry(its group) + tiles before it
// in the group. The order of additions depends on the positions of tiles only, for any number of
// blocks. Addition commutes: a lane adds every 32nd total, not a run.
//
// Part of the rung whose Idea, Changes, Cost and Limits are in 100_ring.sm90a.cu.
#pragma once

#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/ops/scan/cuda/detail/published.hpp"
#include "rung/ops/scan/cuda/detail/tile.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda::ring {

/// One block per SM: 192 KiB of tiles.
inline constexpr int tile_bytes = 32 << 10;
inline constexpr int stages = 6;
/// Rows of 512 bytes in a chunk, the unit that a warp scans at a time.
inline constexpr int rows = 4;
inline constexpr int chunk_bytes = rows * warp_size * 16;
inline constexpr int chunks = tile_bytes / chunk_bytes;
inline constexpr int scan_warps = chunks;
inline constexpr int sum_warps = 3;
inline constexpr int look_warp = scan_warps + sum_warps;
inline constexpr int load_warp = look_warp + 1;
inline constexpr int threads = (load_warp + 1) * warp_size;
/// Tiles per group.
inline constexpr int group_size = 128;
// The parity that a wait tests distinguishes a phase from the next, not from the one after. Tiles
// may arrive in another order than they were issued, so the same sum warp always waits on a given
// buffer, phase by phase.
static_assert(stages % sum_warps == 0);

/// A buffer of the ring, with the barriers and values that the roles exchange about its tile.
template <class T, class S>
struct Stage {
  ptx::MemoryBarrier full;   // loaded: the lanes of load_warp
  ptx::MemoryBarrier ready;  // `before` is known: a lane of look_warp; `before_chunk`: a sum warp
  ptx::MemoryBarrier empty;  // released by the scan warps and the sum warp
  T* y;                      // destination of the tile
  std::int64_t line;
  std::int64_t tile;  // index within the line
  int valid;          // elements
  S before;
  S before_chunk[chunks];  // prefixes within the tile
};
template <class T, class S>
struct Shared {
  alignas(128) unsigned char data[stages][tile_bytes];
  Stage<T, S> stage[stages];
};

/// Published totals of the tiles of all lines.
template <class S>
struct Totals {
  Published<S>* nodes;  // null: lines of one tile
  std::int64_t tiles;   // per line
  std::int64_t count;   // tiles of all lines
};

/// Buffer index of a tile, and the parity of its phase.
struct Turn {
  int at;
  unsigned parity = 0;
  __device__ __forceinline__ void advance(int tiles) {
    at += tiles;
    if (at >= stages) {
      at -= stages;
      parity ^= 1u;
    }
  }
};

/// Totals of one group, as far as they have arrived: each is read once, and all missing totals of
/// the group are polled together. Polling the next group ahead of time is slower: 577 us against
/// 531 for 2^28 floats on an H200.
template <class Policy, class S = typename Policy::State>
class Window {
 public:
  /// Starts to poll a group of `count` tiles.
  __device__ __forceinline__ void open(const Policy& policy, const Published<S>* nodes, int count) {
    nodes_ = nodes + lane_of_thread();
    missing_ = 0;
#pragma unroll
    for (int k = 0; k < per_lane; ++k) {
      value_[k] = policy.identity;
      if (k * warp_size + lane_of_thread() < count) missing_ |= 1u << k;
    }
    look(missing_);
  }
  /// Waits for the first `count` totals and returns their sum to every lane.
  __device__ __forceinline__ S before(const Policy& policy, int count) {
    const auto combine = [&](const S& a, const S& b) { return policy.combine(a, b); };
    const int mine = (count - lane_of_thread() + warp_size - 1) / warp_size;  // may be 0
    const unsigned needed = (1u << mine) - 1;
    if (!seen(needed)) {
      look(missing_);
      while (!seen(needed)) {
        ptx::nanosleep(20);
        look(missing_ & needed);
      }
    }
    S sum = policy.identity;
#pragma unroll
    for (int k = 0; k < per_lane; ++k) {
      if ((needed >> k & 1u) != 0) sum = combine(sum, value_[k]);
    }
    return warp_reduce(sum, combine);
  }

 private:
  static constexpr int per_lane = group_size / warp_size;
  [[nodiscard]] __device__ __forceinline__ bool seen(unsigned needed) const {
    return __all_sync(all_lanes, (missing_ & needed) == 0 ? 1 : 0) != 0;
  }
  /// Polls all totals marked in `wanted` once.
  __device__ __forceinline__ void look(unsigned wanted) {
    S found[per_lane];
    bool there[per_lane];
#pragma unroll
    for (int k = 0; k < per_lane; ++k) {
      there[k] = false;
      if ((wanted >> k & 1u) != 0) there[k] = nodes_[k * warp_size].look(found[k]);
    }
#pragma unroll
    for (int k = 0; k < per_lane; ++k) {
      if (there[k]) {
        value_[k] = found[k];
        missing_ &= ~(1u << k);
      }
    }
  }
  const Published<S>* nodes_;
  S value_[per_lane];
  unsigned missing_;  // one bit per value
};

}  // namespace rung::inline RUNG_TARGET::scan_cuda::ring
