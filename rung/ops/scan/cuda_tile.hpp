// SPDX-License-Identifier: Apache-2.0
// A block's tile of a line, in registers: loaded once, summed, and scanned when what lies before
// it is known.
//
// A warp holds `rows` rows of 32 packs, one below the other; warps follow one another. Every
// instruction of a load then moves 512 contiguous bytes, and nothing passes through shared memory
// but one value a warp. Elements are combined in an order that their position alone decides:
//   tile's prefix + (warps before + (rows before + (lanes before + elements before in the pack)))
#pragma once

#include "rung/ops/scan/cuda_scan.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

template <class Policy, int Threads, int Rows>
struct Tile {
  using T = typename Policy::Element;
  using State = typename Policy::State;
  static constexpr int packs = pack_size<T>;
  static constexpr int warps = Threads / warp_size;
  static constexpr int row_elements = warp_size * packs;
  static constexpr int warp_elements = Rows * row_elements;
  static constexpr int elements = warps * warp_elements;

  struct Scratch {
    State of_warp[warps];
  };

  Pack<T, packs> pack[Rows];
  unsigned heads[Rows];
  State before[Rows];  // of this thread's pack in each row, within the warp at first

  /// This thread's first element of a row, from the tile's first on.
  static __device__ __forceinline__ int position(int row) {
    const int thread = static_cast<int>(threadIdx.x);
    return thread / warp_size * warp_elements + row * row_elements + thread % warp_size * packs;
  }

  /// The tile that begins at element `first` of a line of n, at `x`.
  __device__ __forceinline__ void load(const T* x, std::int64_t stride, std::int64_t first,
                                       std::int64_t n, const unsigned* head_words) {
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      const std::int64_t i = first + position(row);
      pack[row] = load_pack(x + i * stride, stride, n - i);
    }
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      const std::int64_t i = first + position(row);
      heads[row] = head_bits<T>(head_words, i, n - i);
    }
  }

  /// Prefixes within the warp go to `before`; the warp's total, to every lane.
  __device__ __forceinline__ State scan_warp(const Policy& policy) {
    const auto combine = [&](const State& a, const State& b) { return policy.combine(a, b); };
    const int lane = lane_of_thread();
    State scanned[Rows];
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      scanned[row] = warp_scan_inclusive(policy.total(pack[row], heads[row]), combine);
    }
    State rows_before = policy.identity;
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      const State lanes_before = shuffle_up(scanned[row], 1);
      before[row] = lane == 0 ? rows_before : combine(rows_before, lanes_before);
      rows_before = combine(rows_before, shuffle(scanned[row], warp_size - 1));
    }
    return rows_before;
  }

  /// What lies before this warp in the tile, and the tile's total, to every thread.
  struct Block {
    State before_warp;
    State total;
  };
  __device__ __forceinline__ Block scan_block(const Policy& policy, Scratch& scratch) {
    const State warp_total = scan_warp(policy);
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    if (lane_of_thread() == 0) scratch.of_warp[warp] = warp_total;
    __syncthreads();
    Block block{policy.identity, policy.identity};
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      if (w == warp) block.before_warp = block.total;
      block.total = policy.combine(block.total, scratch.of_warp[w]);
    }
    return block;
  }

  /// Scans and stores, given all that lies before this warp.
  __device__ __forceinline__ void finish(const Policy& policy, const State& before_warp, T* y,
                                         std::int64_t stride, std::int64_t first, std::int64_t n,
                                         bool exclusive) {
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      const std::int64_t i = first + position(row);
      if (i >= n) continue;
      const auto result =
          policy.apply(pack[row], heads[row], policy.combine(before_warp, before[row]), exclusive);
      store_pack(y + i * stride, stride, n - i, result);
    }
  }
};

}  // namespace rung::inline RUNG_TARGET::scan_cuda
