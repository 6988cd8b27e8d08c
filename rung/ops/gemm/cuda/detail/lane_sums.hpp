// SPDX-License-Identifier: Apache-2.0
// Simultaneous reduction of many sums across the lanes of a warp.
#pragma once

#include "rung/device/collectives.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Reduces Count sums across Lanes lanes that are `apart` lanes apart. At each distance a lane
/// sends half of its sums and receives the other half: Count shuffles in all, not Count per
/// distance. Returns the index of the first sum that the lane holds afterward, in values[0] and on,
/// or -1 if it holds none.
template <int Lanes, int Count, class Sum>
__device__ __forceinline__ int add_over_lanes(Sum (&values)[Count], int apart) {
  const int lane = lane_of_thread();
  int first = 0;
  bool has_share = true;
#pragma unroll
  for (int distance = 1; distance < Lanes; distance *= 2) {
    const bool upper = (lane & (distance * apart)) != 0;
    const int half = Count / 2 / distance;
    if (half == 0) {
      values[0] += shuffle_xor(values[0], distance * apart);
      has_share = has_share && !upper;
      continue;
    }
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const Sum given = upper ? values[i] : values[half + i];
      const Sum kept = upper ? values[half + i] : values[i];
      values[i] = kept + shuffle_xor(given, distance * apart);
    }
    first += upper ? half : 0;
  }
  return has_share ? first : -1;
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
