// SPDX-License-Identifier: Apache-2.0
// Collectives: what the lanes of a warp, or the threads of a block, compute together. Values are of
// any trivially copyable type; `combine(earlier, later)` is associative and need not commute: the
// order of lanes is the order of operands, so results are the same from run to run.
//
// All lanes of the warp take part, all threads of a one-dimensional block. A block's collectives
// need scratch in shared memory and end with a barrier: the scratch may be used again at once.
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
    // Less than a word: widened, sent, cut again.
    static_assert(sizeof(T) <= 2, "pad the type to a multiple of four bytes");
    using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
    const unsigned bits = __builtin_bit_cast(Bits, value);
    return __builtin_bit_cast(T, static_cast<Bits>(shuffle(bits)));
  }
}

}  // namespace device_detail

/// The value of another lane; `width` cuts the warp into groups of that many lanes (a power of 2).
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
/// Returns the value of the lane `delta` before; lanes without one keep their own.
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

/// The index of this thread within its warp.
__device__ __forceinline__ int lane_of_thread() {
  return static_cast<int>(threadIdx.x) % warp_size;
}

/// Every lane of a group of `Width` gets the group's result.
template <int Width = warp_size, class T, class Combine>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
  const int lane = lane_of_thread();
#pragma unroll
  for (int distance = 1; distance < Width; distance *= 2) {
    const T other = shuffle_xor(value, distance);
    // Neighboring runs of lanes meet; the one of the lower lanes comes first.
    value = (lane & distance) != 0 ? combine(other, value) : combine(value, other);
  }
  return value;
}

/// Every lane of `lanes` adjacent ones, a power of two, gets their result; combine must commute.
template <class T, class Combine>
__device__ __forceinline__ T lanes_reduce(T value, Combine combine, int lanes) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value = combine(value, shuffle_xor(value, distance));
  }
  return value;
}

/// Lane i gets the result of lanes 0 to i of its group.
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

/// One value a warp of a block.
template <class T, int Threads>
struct WarpValues {
  static_assert(Threads % warp_size == 0 && Threads <= 1024);
  static constexpr int warps = Threads / warp_size;
  T of_warp[warps];
};

/// Every thread gets the block's result.
template <int Threads, class T, class Combine>
__device__ __forceinline__ T block_reduce(T value, Combine combine, T identity,
                                          WarpValues<T, Threads>& scratch) {
  constexpr int warps = WarpValues<T, Threads>::warps;
  value = warp_reduce(value, combine);
  if constexpr (warps == 1) return value;
  const int lane = lane_of_thread();
  if (lane == 0) scratch.of_warp[threadIdx.x / warp_size] = value;
  __syncthreads();
  // Each warp reduces the values of all, which costs less than another barrier.
  value = lane < warps ? scratch.of_warp[lane] : identity;
  value = warp_reduce(value, combine);
  __syncthreads();
  return value;
}

/// A thread's place in a scan over the block.
template <class T>
struct BlockScan {
  T before;  // of all threads before this one; the identity for the first
  T total;   // of all threads
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
