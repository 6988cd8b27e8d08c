// SPDX-License-Identifier: Apache-2.0
// Mean and variance by parts. Each warp of a row computes moments of its part about its own center,
// the mean of some of its elements; they are then moved to the first warp's center by adding small
// numbers only (T. Chan, G. Golub and R. LeVeque, 1983). The warps of a row thus synchronize once,
// not twice, with the accuracy of two passes: a center from m of n elements differs from the mean
// by at most sqrt(n / m) standard deviations.
#pragma once

#include <cstdint>
#include <limits>

#include "rung/ops/norm/shared/cuda/packs.hpp"

namespace rung::norm_cuda::inline RUNG_TARGET {

/// Packs of a row per thread: 32 elements, 16 for f64.
template <class T>
inline constexpr int kept_packs = sizeof(T) == 8 ? 8 : 32 / vector_width<T>;

/// Partial result of a warp, or of a block's span: moments about a center of its own.
template <class W>
struct alignas(16) WarpPart {
  W center;
  W count;  // elements
  Moments<W> moments;
};

/// Returns the sum over the lanes of a row: adjacent lanes, a power of two, or a whole warp.
template <class W>
__device__ __forceinline__ W lanes_sum(W value, int lanes) {
  return lanes >= 32 ? warp_reduce(value, Plus{}) : lanes_reduce(value, Plus{}, lanes);
}
/// Reduces both moments over a whole warp at once: after the first step, each half-warp reduces
/// one.
template <class W>
__device__ __forceinline__ Moments<W> lanes_sum(const Moments<W>& value, int lanes) {
  if (lanes < 32) return {lanes_sum(value.rest, lanes), lanes_sum(value.squares, lanes)};
  const bool upper = lane_of_thread() >= 16;
  W sum = upper ? value.squares : value.rest;
  sum += shuffle_xor(upper ? value.rest : value.squares, 16);
#pragma unroll
  for (int distance = 8; distance > 0; distance /= 2) sum += shuffle_xor(sum, distance);
  return {shuffle(sum, 0), shuffle(sum, 16)};
}

/// Returns the number of elements of `lanes` lanes of a row with `packs` packs each, if `left`
/// packs remain.
template <int width>
__device__ __forceinline__ int elements_of(int left, int lanes, int packs) {
  const int most = lanes * packs;
  return (left < 0 ? 0 : left < most ? left : most) * width;
}

struct NothingMore {
  template <class W>
  __device__ __forceinline__ void operator()(W, Moments<W>&) const {}
};

/// Returns the part of this thread's lanes, whose first pack is `left` packs before the row's end.
/// Moments are about the mean of the lanes' first packs, at least an eighth of the part's elements,
/// so this center differs from the part's mean by at most 2.7 standard deviations, which the
/// moments correct. values(p) returns the thread's pack p, zeros if has(p) is false.
/// more(center, moments) adds elements that the packs do not contain; the caller counts them.
template <int packs, int width, class W, class Arguments, class Has, class Values,
          class More = NothingMore>
__device__ __forceinline__ WarpPart<W> part_of_lanes(const Arguments& call, int lanes, int left,
                                                     Has&& has, Values&& values, More&& more = {}) {
  WarpPart<W> found{0, static_cast<W>(elements_of<width>(left, lanes, packs)), {}};
  if (call.layer) {
    constexpr W most = 32 * width;  // elements: the power of two by which sums are shrunk
    W sums[2] = {};                 // two accumulators, to halve the dependency chain
    const auto s = values(0);
#pragma unroll
    for (int i = 0; i < width; ++i) sums[i % 2] += s[i] * (1 / most);
    const auto elements = static_cast<W>(elements_of<width>(left, lanes, 1));
    found.center =
        center_near(lanes_sum(sums[0] + sums[1], lanes) * (elements == most ? W{1}
                                                           : elements > 0   ? most / elements
                                                                            : W{0}));
  }
  Moments<W> moments[2] = {};
#pragma unroll
  for (int p = 0; p < packs; ++p) {
    if (!has(p)) continue;
    const auto s = values(p);
#pragma unroll
    for (int i = 0; i < width; ++i) moments[i % 2].add(s[i] - found.center, call.factors.shrink);
  }
  more(found.center, moments[0]);
  found.moments = lanes_sum(AddMoments{}(moments[0], moments[1]), lanes);
  return found;
}

/// Returns the moments of all parts about the first part's center; bitwise the same in every warp.
template <class Arguments, class W>
__device__ __forceinline__ Moments<W> join(const Arguments& call, const WarpPart<W>* parts,
                                           int count, W& center) {
  center = parts[0].center;
  Moments<W> all{};
#pragma unroll 1
  for (int i = lane_of_thread(); i < count; i += 32) {
    const WarpPart<W> part = parts[i];
    all = AddMoments{}(
        all, call.layer ? moved_by(part.moments, part.center - center, part.count, call.factors)
                        : part.moments);
  }
  return lanes_sum(all, 32);
}

}  // namespace rung::norm_cuda::inline RUNG_TARGET
