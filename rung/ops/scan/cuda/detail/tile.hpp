// SPDX-License-Identifier: Apache-2.0
// A block's tile of a line, in registers: loaded once, summed, and scanned when its prefix is
// known.
//
// A warp holds `rows` rows of 32 packs, one below the other; warps follow one another. Every load
// instruction then moves 512 contiguous bytes, and only one value per warp passes through shared
// memory. The order of combination depends on positions only:
//   tile's prefix + (warps before + (rows before + (lanes before + elements before in the pack)))
#pragma once

#include "rung/ops/scan/cuda/detail/scan.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

template <class Policy, int Threads, int Rows>
struct ScanTile {
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
  T* to;  // destination of the tile in y
  int valid;
  bool is_wide;
  State before[Rows];  // prefix of this thread's pack in each row, at first within the warp

  /// Returns the index within the tile of this thread's first element of a row.
  static __device__ __forceinline__ int position(int row) {
    const int thread = static_cast<int>(threadIdx.x);
    return thread / warp_size * warp_elements + row * row_elements + thread % warp_size * packs;
  }

  /// Loads the tile at element `first` of a line. Whether 16-byte accesses apply (a full tile,
  /// contiguous and 16-byte aligned in x and y) is decided once per tile, which saves registers.
  __device__ __forceinline__ void load(const Lines<T>& lines, std::int64_t line,
                                       std::int64_t first) {
    const std::int64_t left = lines.n - first;
    valid = left < 0 ? 0 : left < elements ? static_cast<int>(left) : elements;
    to = lines.y_of(line) + first * lines.y_stride;
    const T* x = lines.x_of(line) + first * lines.x_stride;
    is_wide = packs * sizeof(T) == 16 && valid == elements && lines.x_stride == 1 &&
              lines.y_stride == 1 && is_wide_aligned<T, packs>(x) && is_wide_aligned<T, packs>(to);
    if (is_wide) {
      if constexpr (packs * sizeof(T) == 16) {
#pragma unroll
        for (int row = 0; row < Rows; ++row) pack[row] = load_aligned(x + position(row));
      }
    } else {
#pragma unroll
      for (int row = 0; row < Rows; ++row) {
        pack[row] =
            load_pack(x + position(row) * lines.x_stride, lines.x_stride, valid - position(row));
      }
    }
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      heads[row] = head_bits<T>(lines.heads, first + position(row), valid - position(row));
    }
  }

  /// Computes prefixes within the warp, in `before`; returns the warp's total to every lane.
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

  /// Prefix of this warp within the tile, and the tile's total, in every thread.
  struct WarpPrefix {
    State before_warp;
    State total;
  };
  __device__ __forceinline__ WarpPrefix scan_block(const Policy& policy, Scratch& scratch) {
    const State warp_total = scan_warp(policy);
    const int warp = static_cast<int>(threadIdx.x) / warp_size;
    if (lane_of_thread() == 0) scratch.of_warp[warp] = warp_total;
    __syncthreads();
    WarpPrefix block{policy.identity, policy.identity};
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      if (w == warp) block.before_warp = block.total;
      block.total = policy.combine(block.total, scratch.of_warp[w]);
    }
    return block;
  }

  /// Scans and stores the tile, given the prefix of this warp.
  __device__ __forceinline__ void finish(const Policy& policy, const State& before_warp,
                                         std::int64_t stride, bool exclusive) {
    const auto result = [&](int row) {
      return policy.apply(pack[row], heads[row], policy.combine(before_warp, before[row]),
                          exclusive);
    };
    if (is_wide) {
      if constexpr (packs * sizeof(T) == 16) {
#pragma unroll
        for (int row = 0; row < Rows; ++row) store_aligned(to + position(row), result(row));
      }
      return;
    }
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      if (position(row) >= valid) continue;
      store_pack(to + position(row) * stride, stride, valid - position(row), result(row));
    }
  }
};

}  // namespace rung::inline RUNG_TARGET::scan_cuda
