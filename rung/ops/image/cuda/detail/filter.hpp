// SPDX-License-Identifier: Apache-2.0
// Arithmetic of one pixel: conversion of sums to results, and the constants of each filter.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rung/device/device.hpp"
#include "rung/ops/image/op/image.hpp"

namespace rung::image_cuda::inline RUNG_TARGET {

/// Kernel parameter: the constants of a filter.
template <class T>
struct Filter {
  static constexpr bool is_u8 = std::is_same_v<T, std::uint8_t>;
  using Sum = std::conditional_t<is_u8, int, float>;  // u8: integers

  ImageFilter kind;
  int radius;
  Sum weight[Image::max_radius + 1];  // blurs, by distance; u8: in units of 1/256
  Sum grey_weight[3];                 // u8: in units of 1/2^15, or 1/10
  bool tenths, by_term;
  bool zero_edges;      // box: values outside are 0; applied by the loads
  unsigned area;        // box: T^2
  unsigned rounding;    // u8: area / 2, or 0 to truncate
  unsigned reciprocal;  // u8: 2^32 / area, rounded up
  float scale;          // f32: 1 / area, or 1
  Sum amount;           // unsharp; u8: in units of 1/256

  [[nodiscard]] __device__ __forceinline__ T grey(Sum r, Sum g, Sum b) const {
    if constexpr (is_u8) {
      if (by_term) return static_cast<T>(3 * r / 10 + 6 * g / 10 + b / 10);
    }
    const Sum sum = grey_weight[0] * r + grey_weight[1] * g + grey_weight[2] * b;
    if constexpr (is_u8) return static_cast<T>(tenths ? sum / 10 : (sum + (1 << 14)) >> 15);
    if constexpr (!is_u8) return sum;
  }

  /// Converts the sum over a window to the result.
  [[nodiscard]] __device__ __forceinline__ Sum blurred(Sum sum) const {
    if constexpr (is_u8) {
      if (kind != ImageFilter::box) return (sum + (1 << 15)) >> 16;
      // Exact: sums are below 2^18, and rounding up the reciprocal adds less than 961 / 2^32.
      const unsigned rounded = static_cast<unsigned>(sum) + rounding;
      return static_cast<int>(area == 1 ? rounded : __umulhi(rounded, reciprocal));
    } else {
      return sum * scale;
    }
  }

  /// Returns the unsharp result of pixel x and its blur.
  [[nodiscard]] __device__ __forceinline__ T sharpened(Sum x, Sum blur) const {
    if constexpr (is_u8) {
      const int sharp = x + (((x - blur) * amount + (1 << 7)) >> 8);
      return static_cast<T>(sharp < 0 ? 0 : sharp > 255 ? 255 : sharp);
    } else {
      return x + amount * (x - blur);
    }
  }

  /// Computes the Sobel result; at(k, l) returns the neighbor k rows down and l pixels across.
  template <class At>
  static __device__ __forceinline__ T sobel(const At& at) {
    const Sum above[3] = {at(-1, -1), at(-1, 0), at(-1, 1)};
    const Sum below[3] = {at(1, -1), at(1, 0), at(1, 1)};
    const Sum left = at(0, -1);
    const Sum right = at(0, 1);
    const Sum across = (above[2] - above[0]) + 2 * (right - left) + (below[2] - below[0]);
    const Sum down = (below[0] - above[0]) + 2 * (below[1] - above[1]) + (below[2] - above[2]);
    return magnitude(across, down);
  }
  /// Returns the magnitude of Sobel's two gradients.
  static __device__ __forceinline__ T magnitude(Sum across, Sum down) {
    // The sum is at most 2 * 1020^2 for u8: exact in f32.
    const float root = sqrtf(static_cast<float>(across * across + down * down));
    if constexpr (is_u8) return root > 255 ? T{255} : static_cast<T>(__float2int_rn(root));
    if constexpr (!is_u8) return root;
  }
};

template <class T>
Filter<T> filter_of(const Image::Args& args) {
  Filter<T> filter{};
  filter.kind = args.filter();
  filter.radius = args.radius;
  const GreyWeights which = args.options.weights;
  filter.tenths = which == GreyWeights::tenths || which == GreyWeights::tenths_by_term;
  filter.by_term = which == GreyWeights::tenths_by_term;
  filter.zero_edges = args.options.edge == ImageEdge::zero;
  const bool is_601 = which == GreyWeights::bt601;
  for (int c = 0; c < 3; ++c) {
    if constexpr (Filter<T>::is_u8) {
      constexpr int weights[3][3] = {{3, 6, 1}, {9798, 19235, 3735}, {6966, 23436, 2366}};
      filter.grey_weight[c] = weights[filter.tenths ? 0 : is_601 ? 1 : 2][c];
    } else {
      constexpr float weights[3][3] = {
          {0.3F, 0.6F, 0.1F}, {0.299F, 0.587F, 0.114F}, {0.2126F, 0.7152F, 0.0722F}};
      filter.grey_weight[c] = weights[filter.tenths ? 0 : is_601 ? 1 : 2][c];
    }
  }
  for (int k = 0; k <= args.radius; ++k) {
    if constexpr (Filter<T>::is_u8) filter.weight[k] = args.blur_256[k];
    if constexpr (!Filter<T>::is_u8) filter.weight[k] = args.blur[k];
  }
  const auto taps = static_cast<unsigned>(args.taps());
  filter.area = taps * taps;
  filter.rounding = args.options.truncate ? 0 : filter.area / 2;
  filter.reciprocal =
      static_cast<unsigned>(((std::uint64_t{1} << 32) + filter.area - 1) / filter.area);
  filter.scale = args.filter() == ImageFilter::box ? 1.0F / static_cast<float>(filter.area) : 1.0F;
  if constexpr (Filter<T>::is_u8) filter.amount = args.amount_256;
  if constexpr (!Filter<T>::is_u8) filter.amount = static_cast<float>(args.options.amount);
  return filter;
}

}  // namespace rung::image_cuda::inline RUNG_TARGET
