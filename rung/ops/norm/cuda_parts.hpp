// SPDX-License-Identifier: Apache-2.0
// Mean and variance by parts. Each warp of a row takes the moments of its part about its own mean;
// they are then moved to the mean of all, without subtracting large numbers (T. Chan, G. Golub and
// R. LeVeque, 1983). So the warps of a row meet once, not twice, and the digits are those of two
// passes over the row.
#pragma once

#include <cstdint>
#include <limits>

#include "rung/ops/norm/cuda_packs.hpp"

namespace rung::norm_cuda::inline RUNG_TARGET {

/// Packs of a row that a thread keeps: 32 elements, f64 16.
template <class T>
inline constexpr int kept_packs = sizeof(T) == 8 ? 8 : 32 / pack_width<T>;

/// What a warp found: moments about its own mean.
template <class W>
struct alignas(16) WarpPart {
  W center;
  W count;  // elements
  Moments<W> moments;
};

/// f over the lanes of a row, which are neighbours: a power of two, or all of a warp.
template <class V, class F>
__device__ __forceinline__ V lanes_reduce(V value, int lanes, F f) {
  if (lanes >= 32) return warp_reduce(value, f);
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value = f(value, shuffle_xor(value, distance));
  }
  return value;
}

/// The part of this thread's lanes. values(p) is its pack p, zeros where has(p) is false; between()
/// is called between the two passes.
template <int packs, class W, class Has, class Values, class Between>
__device__ __forceinline__ WarpPart<W> part_of_lanes(bool layer, int lanes, W count, Has&& has,
                                                     Values&& values, Between&& between) {
  WarpPart<W> part{0, count, {}};
  if (layer) {
    W sums[2] = {};  // two chains of additions, half as long
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const auto s = values(p);
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(s) / sizeof(W)); ++i) sums[i % 2] += s[i];
    }
    const W sum = lanes_reduce(sums[0] + sums[1], lanes, Plus{});
    part.center = count > 0 ? sum / count : W{0};
    between();
  }
  Moments<W> moments[2] = {};
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    if (!has(p)) continue;
    const auto s = values(p);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(s) / sizeof(W)); ++i) {
      moments[i % 2].add(s[i] - part.center);
    }
  }
  part.moments = lanes_reduce(AddMoments{}(moments[0], moments[1]), lanes, AddMoments{});
  return part;
}

/// A sum of squares, less what it has for its center being off the mean; infinity stays.
template <class W>
__device__ __forceinline__ W less(W squares, W correction) {
  return squares < std::numeric_limits<W>::infinity() ? squares - correction : squares;
}

/// The moments of all parts, and the center they are about; in every warp, bit for bit the same.
template <class Call, class W>
__device__ __forceinline__ Moments<W> join(const Call& call, const WarpPart<W>* parts, int count,
                                           W& center) {
  const int lane = lane_of_thread();
  if (call.layer) {
    W sum = 0;
#pragma unroll 1
    for (int i = lane; i < count; i += 32) sum += parts[i].center * parts[i].count;
    center = warp_reduce(sum, Plus{}) * call.part;
  }
  Moments<W> all{};
#pragma unroll 1
  for (int i = lane; i < count; i += 32) {
    const WarpPart<W> part = parts[i];
    if (part.count == 0) continue;
    if (!call.layer) {
      all.squares += part.moments.squares;
      continue;
    }
    const W rest = part.moments.rest / part.count;
    const W distance = part.center - center + rest;
    all.rest += part.count * distance;
    all.squares +=
        less(part.moments.squares, part.moments.rest * rest) + part.count * distance * distance;
  }
  return warp_reduce(all, AddMoments{});
}

}  // namespace rung::norm_cuda::inline RUNG_TARGET
