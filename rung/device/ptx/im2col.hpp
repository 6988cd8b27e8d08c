// SPDX-License-Identifier: Apache-2.0
// im2col copies: one thread loads into shared memory, one row per pixel, the input pixels that a
// tile of a convolution's output needs for one tap of the filter. Compute capability 9.0.
//
//   const TensorMap map = make_im2col_map(x, window, Swizzle::bytes_128);   // x: NHWC
//   ptx::im2col_load(tile, map, {image, h, w, channel}, {tap_h, tap_w}, full);
//
// Pixels are numbered from (image, h, w) on, along w first, then h, then images, within a window:
// on each spatial axis from lower to extent - 1 + upper, in steps of `steps`. Each position, moved
// by `offsets`, is loaded; pixels outside the image are zero. For a filter of f taps with padding p
// and dilation d: lower = -p, upper = p - (f - 1) d, steps = the convolution's stride,
// offsets = tap * d; the window's positions are then the output's pixels, in their order.
#pragma once

#include <cstdint>
#include <string>

#include "rung/device/ptx/tensor_copy.hpp"

namespace rung::inline RUNG_TARGET {

/// Returns whether an im2col map supports a View of 3 to 5 axes, images first and channels last.
inline Support im2col_map_support(const TensorMapSource& source) {
  const Im2colWindow& window = source.window;
  const int spatial = source.rank - 2;
  if (source.rank < 3) return unsupported("an im2col map has 1 to 3 spatial axes");
  if (window.pixels < 1 || window.pixels > 1024) {
    return unsupported("an im2col copy brings 1 to 1024 pixels");
  }
  // The descriptor has 32 bits for the coordinates of a corner.
  const int limit = spatial == 1 ? 1 << 15 : spatial == 2 ? 1 << 7 : 1 << 4;
  for (int axis = 0; axis < spatial; ++axis) {
    if (window.lower[axis] < -limit || window.lower[axis] >= limit || window.upper[axis] < -limit ||
        window.upper[axis] >= limit) {
      return unsupported("an im2col map's corners are too far out for its number of axes");
    }
    if (window.steps[axis] < 1 || window.steps[axis] > 8) {
      return unsupported("an im2col map has steps from 1 to 8");
    }
  }
  return tensor_map_support(source);
}

template <class T, int N>
TensorMapSource im2col_map_source(const View<T, N>& view, const Im2colWindow& window,
                                  Swizzle swizzle) {
  static_assert(N >= 3 && N <= 5);
  int box[N];
  for (int& extent : box) extent = 1;
  box[N - 1] = window.channels;
  TensorMapSource source = tensor_map_source(view, box, swizzle);
  source.window = window;
  return source;
}

/// Makes an im2col map of a View. Throws Error(invalid_argument) with the reason if
/// im2col_map_support() rejects it.
template <class T, int N>
TensorMap make_im2col_map(const View<T, N>& view, const Im2colWindow& window,
                          Swizzle swizzle = Swizzle::none) {
  const TensorMapSource source = im2col_map_source(view, window, swizzle);
  if (const Support support = im2col_map_support(source); !support) {
    throw Error(ErrorCode::invalid_argument, std::string("make_im2col_map: ") + support.why);
  }
  return device_detail::encode_tensor_map(source);
}

namespace ptx {

#if defined(__CUDACC__)

/// Starts an im2col copy. `barrier` counts the bytes of all pixels: expect them first.
template <int N, int Spatial>
__device__ __forceinline__ void im2col_load(void* to, const TensorMap& map, const int (&at)[N],
                                            const int (&offsets)[Spatial], MemoryBarrier& barrier) {
  static_assert(N >= 3 && N <= 5 && Spatial == N - 2);
  const std::uint32_t target = shared_address(to), counter = shared_address(&barrier);
  const auto offset = [&](int i) { return static_cast<std::uint16_t>(offsets[i]); };
  if constexpr (N == 3) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2], {%6};" ::"r"(target),
        "l"(&map), "r"(counter), "r"(at[2]), "r"(at[1]), "r"(at[0]), "h"(offset(0))
        : "memory");
  } else if constexpr (N == 4) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(target),
        "l"(&map), "r"(counter), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]), "h"(offset(1)),
        "h"(offset(0))
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(target),
        "l"(&map), "r"(counter), "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]),
        "h"(offset(2)), "h"(offset(1)), "h"(offset(0))
        : "memory");
  }
}

#else

template <int N, int Spatial>
void im2col_load(void* to, const TensorMap& map, const int (&at)[N], const int (&offsets)[Spatial],
                 MemoryBarrier& barrier, simt::Place place = simt::Place::current()) {
  static_assert(N >= 3 && N <= 5 && Spatial == N - 2);
  simt::im2col_load(to, &map, at, offsets, N, &barrier.state, place);
}

#endif

}  // namespace ptx
}  // namespace rung::inline RUNG_TARGET
