// SPDX-License-Identifier: Apache-2.0
// Collectives: shuffles, reductions and scans over the lanes of a warp or the threads of a block.
// Values are of any trivially copyable type; `combine(earlier, later)` must be associative; it need
// not commute (except in lanes_reduce()), since operands are combined in lane order. Results are
// the same from run to run.
//
// All lanes of the warp (or all threads of a one-dimensional block) must call a collective. Block
// collectives need scratch in shared memory and end with a barrier: the scratch can be reused at
// once.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET {

inline constexpr int warp_size = 32;
inline constexpr unsigned all_lanes = 0xffffffffu;

namespace device_detail {

/// Sends a value through shuffle(word), which moves 4 or 8 bytes.
template <class T, class Shuffle>
__device__ __forceinline__ T shuffle_words(const T& value, Shuffle shuffle) {
  static_assert(std::is_trivially_copyable_v<T>);
  if constexpr (std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8)) {
    return shuffle(value);
  } else if constexpr (sizeof(T) % 4 == 0) {
    constexpr int words = sizeof(T) / 4;
    struct Words {
      unsigned at[words];
    };
    Words moved = __builtin_bit_cast(Words, value);
#pragma unroll
    for (int i = 0; i < words; ++i) moved.at[i] = shuffle(moved.at[i]);
    return __builtin_bit_cast(T, moved);
  } else {
    // 1- and 2-byte values are widened to a word, shuffled and truncated.
    static_assert(sizeof(T) <= 2, "pad the type to a multiple of four bytes");
    using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
    const unsigned bits = __builtin_bit_cast(Bits, value);
    return __builtin_bit_cast(T, static_cast<Bits>(shuffle(bits)));
  }
}

}  // namespace device_detail

/// Returns lane `lane`'s value. `width`, a power of 2, divides the warp into groups of lanes;
/// `lane` counts within the group.
template <class T>
__device__ __forceinline__ T shuffle(const T& value, int lane, int width = warp_size) {
  return device_detail::shuffle_words(
      value, [=](auto word) { return __shfl_sync(all_lanes, word, lane, width); });
}
template <class T>
__device__ __forceinline__ T shuffle_xor(const T& value, int lanes, int width = warp_size) {
  return device_detail::shuffle_words(
      value, [=](auto word) { return __shfl_xor_sync(all_lanes, word, lanes, width); });
}
/// Returns the value of the lane `delta` lanes before this one; the first `delta` lanes of a group
/// keep their own.
template <class T>
__device__ __forceinline__ T shuffle_up(const T& value, int delta, int width = warp_size) {
  return device_detail::shuffle_words(value, [=](auto word) {
    return __shfl_up_sync(all_lanes, word, static_cast<unsigned>(delta), width);
  });
}
template <class T>
__device__ __forceinline__ T shuffle_down(const T& value, int delta, int width = warp_size) {
  return device_detail::shuffle_words(value, [=](auto word) {
    return __shfl_down_sync(all_lanes, word, static_cast<unsigned>(delta), width);
  });
}

/// Returns the index of this thread within its warp.
__device__ __forceinline__ int lane_of_thread() {
  return static_cast<int>(threadIdx.x) % warp_size;
}

/// Reduces the values of each group of `Width` lanes; returns the result in every lane.
template <int Width = warp_size, class T, class Combine>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
  const int lane = lane_of_thread();
#pragma unroll
  for (int distance = 1; distance < Width; distance *= 2) {
    const T other = shuffle_xor(value, distance);
    // Combines two neighboring runs of lanes; the run of the lower lanes is the first operand.
    value = (lane & distance) != 0 ? combine(other, value) : combine(value, other);
  }
  return value;
}

/// Reduces the values of each group of `lanes` adjacent lanes (a power of two); returns the result
/// in every lane of the group. combine must commute.
template <class T, class Combine>
__device__ __forceinline__ T lanes_reduce(T value, Combine combine, int lanes) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value = combine(value, shuffle_xor(value, distance));
  }
  return value;
}

/// Returns the inclusive scan in each group of `Width` lanes: lane i gets lanes 0 to i combined.
template <int Width = warp_size, class T, class Combine>
__device__ __forceinline__ T warp_scan_inclusive(T value, Combine combine) {
  const int lane = lane_of_thread() % Width;
#pragma unroll
  for (int distance = 1; distance < Width; distance *= 2) {
    const T before = shuffle_up(value, distance, Width);
    if (lane >= distance) value = combine(before, value);
  }
  return value;
}

/// Scratch of block collectives: one value per warp.
template <class T, int Threads>
struct WarpValues {
  static_assert(Threads % warp_size == 0 && Threads <= 1024);
  static constexpr int warps = Threads / warp_size;
  T of_warp[warps];
};

/// Reduces the values of the block's threads; returns the result in every thread.
template <int Threads, class T, class Combine>
__device__ __forceinline__ T block_reduce(T value, Combine combine, T identity,
                                          WarpValues<T, Threads>& scratch) {
  constexpr int warps = WarpValues<T, Threads>::warps;
  value = warp_reduce(value, combine);
  if constexpr (warps == 1) return value;
  const int lane = lane_of_thread();
  if (lane == 0) scratch.of_warp[threadIdx.x / warp_size] = value;
  __syncthreads();
  // Every warp reduces the partials of all warps: redundant, but cheaper than another barrier.
  value = lane < warps ? scratch.of_warp[lane] : identity;
  value = warp_reduce(value, combine);
  __syncthreads();
  return value;
}

/// Result of block_scan() for one thread.
template <class T>
struct BlockScan {
  T before;  // exclusive prefix: all threads before this one; the identity for the first
  T total;   // all threads of the block
};

template <int Threads, class T, class Combine>
__device__ __forceinline__ BlockScan<T> block_scan(T value, Combine combine, T identity,
                                                   WarpValues<T, Threads>& scratch) {
  constexpr int warps = WarpValues<T, Threads>::warps;
  const int lane = lane_of_thread();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  const T inclusive = warp_scan_inclusive(value, combine);
  if (lane == warp_size - 1) scratch.of_warp[warp] = inclusive;
  __syncthreads();
  T warps_value = lane < warps ? scratch.of_warp[lane] : identity;
  warps_value = warp_scan_inclusive(warps_value, combine);
  __syncthreads();
  const T total = shuffle(warps_value, warps - 1);
  const T before_warp = shuffle(warps_value, warp == 0 ? 0 : warp - 1);
  T before = shuffle_up(inclusive, 1);
  if (lane == 0) {
    before = warp == 0 ? identity : before_warp;
  } else if (warp != 0) {
    before = combine(before_warp, before);
  }
  return {before, total};
}

}  // namespace rung::inline RUNG_TARGET
