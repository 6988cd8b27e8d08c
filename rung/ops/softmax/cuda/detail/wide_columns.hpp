// SPDX-License-Identifier: Apache-2.0
// Columns of softmax, 16 bytes wide: how a thread walks down, and what a block exchanges.
#pragma once

#include "rung/ops/softmax/cuda/detail/registers.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

inline constexpr int columns_block_threads = 1024;
inline constexpr int columns_warps = columns_block_threads / warp_size;
inline constexpr int most_side_by_side = 8;  // threads
inline constexpr int deep = 4;

template <class T>
struct ColumnsShared {
  static constexpr int columns = most_side_by_side * pack_width<T>;
  Total<Accumulator<T>> of_warp[columns_warps][columns + 1];
  Total<Accumulator<T>> of_all[columns];
};

/// f(packs, i) for `deep` packs of this thread at a time, the first of them at element i.
template <class T, class F>
__device__ __forceinline__ void for_each_deep(const T* x, std::int64_t length, std::int64_t step,
                                              F&& f) {
  constexpr int width = pack_width<T>;
  Pack<T, width> infinities;
#pragma unroll
  for (int i = 0; i < width; ++i) {
    infinities[i] = convert<T>(-std::numeric_limits<Accumulator<T>>::infinity());
  }
  const Words nothing = words_of<T>(infinities);
  for (std::int64_t i = threadIdx.y; i < length; i += deep * blockDim.y) {
    Words read[deep];
#pragma unroll
    for (int k = 0; k < deep; ++k) {
      const std::int64_t at = i + k * static_cast<int>(blockDim.y);
      read[k] = nothing;
      if (at < length) read[k] = load_wide<4>(reinterpret_cast<const unsigned*>(x + at * step));
    }
    f(read, i);
  }
}

/// Of the threads of a warp that have the same columns.
template <class Sum>
__device__ __forceinline__ void merge_warp(Total<Sum>& mine, const Power<Sum>& power) {
  const int first = static_cast<int>(blockDim.x);
  const Sum before = mine.maximum;
  for (int distance = first; distance < warp_size; distance *= 2) {
    mine.maximum = Larger{}(mine.maximum, shuffle_xor(mine.maximum, distance));
  }
  mine.sum *= power(before - mine.maximum);
  for (int distance = first; distance < warp_size; distance *= 2) {
    mine.sum += shuffle_xor(mine.sum, distance);
  }
}

}  // namespace rung::softmax_cuda::inline RUNG_TARGET
