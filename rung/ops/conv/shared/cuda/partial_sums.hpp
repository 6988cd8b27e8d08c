// SPDX-License-Identifier: Apache-2.0
// Reduction of the partial sums of slices, one array per slice, in an order that depends on the
// shape alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/export.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/launch.hpp"
#include "rung/device/shared.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

constexpr int sum_threads = 256;
constexpr int sum_lanes = 32;  // adjacent elements
constexpr int sum_warps = sum_threads / sum_lanes;

/// Returns the number of warps that split the slices of 32 elements: up to 8, if one thread per
/// element would not fill a large device.
RUNG_HD RUNG_ALWAYS_INLINE constexpr int warps_together(std::int64_t slices, std::int64_t count) {
  constexpr std::int64_t enough_threads = 1 << 18;
  int together = 1;
  while (together < sum_warps && together < slices && together * count < enough_threads / 2) {
    together *= 2;
  }
  return together;
}

template <class Sum>
struct SliceShares {
  Sum of[sum_warps][sum_lanes];
};

/// Calls put(i, sum over slices of sums[slice][i]) for each of `count` elements. Up to eight warps
/// split the slices of 32 elements: with one thread per element, a small result of hundreds of
/// slices would be bound by load latency.
template <class Sum, class F>
__device__ __forceinline__ void add_partial_sums(const Sum* sums, std::int64_t slices,
                                                 std::int64_t count, F&& put) {
  auto& shares = shared<SliceShares<Sum>>().of;
  const int together = warps_together(slices, count);
  const int lane = static_cast<int>(threadIdx.x) % sum_lanes;
  const int warp = static_cast<int>(threadIdx.x) / sum_lanes;
  const int of_block = sum_threads / together;
  const std::int64_t step = std::int64_t{gridDim.x} * of_block;
  for (std::int64_t first = std::int64_t{blockIdx.x} * of_block; first < count; first += step) {
    const std::int64_t i = first + warp / together * sum_lanes + lane;
    Sum sum = 0;
    if (i < count) {
#pragma unroll 8
      for (std::int64_t slice = warp % together; slice < slices; slice += together) {
        sum += sums[slice * count + i];
      }
    }
    shares[warp][lane] = sum;
    __syncthreads();
    if (warp % together == 0 && i < count) {
      for (int other = 1; other < together; ++other) sum += shares[warp + other][lane];
      put(i, sum);
    }
    __syncthreads();
  }
}

template <class Sum>
LaunchShape sum_grid(std::int64_t count, std::int64_t slices) {
  const std::int64_t of_block = sum_threads / warps_together(slices, count);
  return {.grid = smaller(ceil_div(count, of_block), std::int64_t{0x7fffffff}),
          .block = sum_threads,
          .shared_bytes = sizeof(SliceShares<Sum>)};
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
