// SPDX-License-Identifier: Apache-2.0
// All-reduce over the threads of a row with one barrier: every thread contributes a value and gets
// the combination of all of them, in the order of warps.
//
//   struct Sums {                                     // the reduction
//     float identity() const;
//     float operator()(float mine, int lanes) const;  // over that many adjacent lanes
//     float operator()(float a, float b) const;       // of two values (cluster_all_reduce.hpp)
//   };
//   RowValues<float>& values = shared<RowValues<float>>();
//   sum = row_all_reduce(mine, Sums{}, values, turn);
//   turn ^= 1;                                        // before the next row
//
// Shapes   a row has blockDim.x threads: a power of two up to a warp, or whole warps, at most 32.
// Owners   all threads of the block call it; lane 0 of warp w writes of_warp[turn][w]. Two buffers
//          alternate between rows, so that no warp overwrites values that another still reads.
// Cost     up to 32 threads: shuffles only; beyond: twice the shuffles and one barrier.
#pragma once

#include "rung/device/collectives.hpp"

namespace rung::inline RUNG_TARGET {

/// Double buffer of one value per warp.
template <class Value>
struct RowValues {
  Value of_warp[2][32];
};

/// Sum as a reduction for row_all_reduce() and cluster_all_reduce().
template <class Sum>
struct RowSum {
  [[nodiscard]] __device__ __forceinline__ Sum identity() const { return 0; }
  __device__ __forceinline__ Sum operator()(Sum value, int lanes) const {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      if (distance < lanes) value += shuffle_xor(value, distance);
    }
    return value;
  }
  __device__ __forceinline__ Sum operator()(Sum a, Sum b) const { return a + b; }
};

/// Returns the combination of the values of a row's threads. `whole_warps`: every row has whole
/// warps, so that shuffles are not predicated on the number of lanes.
template <bool whole_warps = false, class Value, class Combine>
__device__ __forceinline__ Value row_all_reduce(Value mine, const Combine& combine,
                                                RowValues<Value>& values, int turn) {
  const int threads = static_cast<int>(blockDim.x);
  const Value of_warp = combine(mine, whole_warps ? warp_size : threads);
  if (!whole_warps && threads <= warp_size) return of_warp;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  if (lane == 0) values.of_warp[turn][threadIdx.x / warp_size] = of_warp;
  __syncthreads();
  Value others = combine.identity();
  if (lane < threads / warp_size) others = values.of_warp[turn][lane];
  return combine(others, warp_size);
}

}  // namespace rung::inline RUNG_TARGET
