// SPDX-License-Identifier: Apache-2.0
// A block's tile of a line, in registers: loaded once, summed, and scanned when its prefix is
// known.
//
// A warp holds `rows` rows of 32 packs, one below the other; warps follow one another. Every load
// instruction then moves 512 contiguous bytes, and only one value per warp passes through shared
// memory. A contiguous tile at any address is loaded from and stored to aligned addresses: lanes
// exchange packs and shift them. The order of combination depends on positions only:
//   tile's prefix + (warps before + (rows before + (lanes before + elements before in the pack)))
#pragma once

#include "rung/ops/scan/cuda/detail/scan.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

/// 16 bytes as words, for packs that are shifted between aligned addresses and their own.
using ShiftWords = Pack<unsigned, 4>;

/// Returns 16 bytes of the 32 bytes (first, second), from byte `offset`, 0 to 15, on.
__device__ __forceinline__ ShiftWords bytes_from(const ShiftWords& first, const ShiftWords& second,
                                                 int offset) {
  unsigned a = first[0];  // named words: an array would end up in local memory
  unsigned b = first[1];
  unsigned c = first[2];
  unsigned d = first[3];
  unsigned e = second[0];
  unsigned f = second[1];
  const unsigned g = second[2];
  const unsigned h = second[3];
  const bool two = (offset & 8) != 0;
  a = two ? c : a;
  b = two ? d : b;
  c = two ? e : c;
  d = two ? f : d;
  e = two ? g : e;
  f = two ? h : f;
  const bool one = (offset & 4) != 0;
  a = one ? b : a;
  b = one ? c : b;
  c = one ? d : c;
  d = one ? e : d;
  e = one ? f : e;
  const int bits = offset % 4 * 8;
  const auto from = [&](unsigned low, unsigned high) {
    return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> bits);
  };
  ShiftWords shifted;
  shifted[0] = from(a, b);
  shifted[1] = from(b, c);
  shifted[2] = from(c, d);
  shifted[3] = from(d, e);
  return shifted;
}

/// Returns the pack that follows this lane's in memory: the next lane's in this row, or the first
/// lane's in the next row.
__device__ __forceinline__ ShiftWords pack_after(const ShiftWords& row, const ShiftWords& next) {
  const int lane = lane_of_thread();
  ShiftWords after;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned own = row[i];
    const unsigned ahead = next[i];
    after[i] = shuffle(lane == 0 ? ahead : own, (lane + 1) % warp_size);
  }
  return after;
}

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
  bool is_wide;     // full, contiguous and aligned in x and y: 16-byte accesses
  bool is_shifted;  // full and contiguous: 16-byte accesses to aligned addresses around the packs
  State before[Rows];  // prefix of this thread's pack in each row, at first within the warp

  using Elements = Pack<T, packs>;
  /// Returns the number of elements between the last aligned address at or before `p` and `p`.
  static __device__ __forceinline__ int lead_of_pack(const T* p) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) % 16 / sizeof(T));
  }
  /// Returns the index within the tile of this thread's first element of a row.
  static __device__ __forceinline__ int position(int row) {
    const int thread = static_cast<int>(threadIdx.x);
    return thread / warp_size * warp_elements + row * row_elements + thread % warp_size * packs;
  }

  /// Loads the tile at element `first` of a line. Whether 16-byte accesses apply is decided once,
  /// for the whole tile, which saves registers.
  __device__ __forceinline__ void load(const Lines<T>& lines, std::int64_t line,
                                       std::int64_t first) {
    const std::int64_t left = lines.n - first;
    valid = left < 0 ? 0 : left < elements ? static_cast<int>(left) : elements;
    to = lines.y_of(line) + first * lines.y_stride;
    const T* x = lines.x_of(line) + first * lines.x_stride;
    const bool contiguous = packs > 1 && packs * sizeof(T) == 16 && valid == elements &&
                            lines.x_stride == 1 && lines.y_stride == 1;
    is_wide = contiguous && is_wide_aligned<T, packs>(x) && is_wide_aligned<T, packs>(to);
    is_shifted = contiguous && !is_wide;
    if (is_shifted) {
      if constexpr (packs > 1) load_shifted(x);
    } else if (is_wide) {
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

  /// Loads the rows of a warp from aligned addresses. The warp's first and last elements, which
  /// share aligned packs with other warps' elements, are loaded one by one.
  __device__ __forceinline__ void load_shifted(const T* x) {
    const int lane = lane_of_thread();
    const int lead = lead_of_pack(x);
    const T* const aligned = x - lead;
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      if (row > 0 || lane > 0 || lead == 0) pack[row] = load_aligned(aligned + position(row));
    }
    Pack<T, packs> edge{};  // of the first lane before its pack, of the last behind its pack
    const bool before_first = lane == 0 && lead > 0;
    if (before_first || lane == warp_size - 1) {
      const T* const from = aligned + (before_first ? position(0) : position(Rows - 1) + packs);
#pragma unroll
      for (int k = 0; k < packs; ++k) {
        if (before_first == (k >= lead)) edge[k] = from[k];
      }
      edge = by_words(edge);
      if (before_first) pack[0] = edge;
    }
    // The last row's successor is in the last lane, where pack_after() expects it in the first.
    const auto behind = __builtin_bit_cast(ShiftWords, edge);
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      const auto words = __builtin_bit_cast(ShiftWords, pack[row]);
      const bool last = row + 1 == Rows;
      ShiftWords after =
          pack_after(words, __builtin_bit_cast(ShiftWords, pack[last ? row : row + 1]));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (last && lane == warp_size - 1) after[i] = behind[i];
      }
      pack[row] = __builtin_bit_cast(Elements,
                                     bytes_from(words, after, lead * static_cast<int>(sizeof(T))));
    }
  }
  /// Stores the results of a warp to aligned addresses, except its first and last elements.
  template <class Result>
  __device__ __forceinline__ void store_shifted(Result&& result) const {
    const int lane = lane_of_thread();
    const int lead = lead_of_pack(to);
    const int head = lead == 0 ? 0 : packs - lead;  // elements before the first aligned address
    auto words = __builtin_bit_cast(ShiftWords, result(0));
    if (lane == 0 && head > 0) {
      const auto elements_of = __builtin_bit_cast(Elements, words);
#pragma unroll
      for (int k = 0; k < packs; ++k) {
        if (k < head) to[position(0) + k] = elements_of[k];
      }
    }
#pragma unroll
    for (int row = 0; row < Rows; ++row) {
      const bool last = row + 1 == Rows;
      const auto next = last ? words : __builtin_bit_cast(ShiftWords, result(last ? row : row + 1));
      const ShiftWords after = pack_after(words, next);
      const ShiftWords shifted = bytes_from(words, after, head * static_cast<int>(sizeof(T)));
      if (!last || lane < warp_size - 1 || head == 0) {
        store_aligned(to + position(row) + head, __builtin_bit_cast(Elements, shifted));
      } else {
        const auto elements_of = __builtin_bit_cast(Elements, words);
#pragma unroll
        for (int k = 0; k < packs; ++k) {
          if (k >= head) to[position(row) + k] = elements_of[k];
        }
      }
      words = next;
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
    if (is_shifted) {
      if constexpr (packs > 1) store_shifted(result);
      return;
    }
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
