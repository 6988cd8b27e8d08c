// SPDX-License-Identifier: Apache-2.0
// Building blocks of the kernels that gather a layer: positions of pixels and terms in x, and the
// epilogue of a pixel's sums. Rows or columns of the product are pixels and filters, k the terms.
#pragma once

#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/term_slices.hpp"
#include "rung/ops/conv/shared/cuda/tiles.hpp"
#include "rung/ops/conv/shared/phases.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

/// Position of a pixel's first tap, in elements of x and along the axes; outside of every image for
/// pixels beyond the last.
struct GatheredPixel {
  std::int64_t base;
  int d, h, v;
};
__device__ __forceinline__ GatheredPixel gathered_pixel(const Gathered& g, std::int64_t index) {
  if (index >= g.pixels()) return {0, outside, outside, outside};
  const auto place = [](const SourceAxis& axis, std::int64_t o) {
    return static_cast<int>(o * axis.step + axis.start);
  };
  GatheredPixel made{};
  made.v = place(g.axis[2], take_axis(index, g.axis[2].places));
  made.h = place(g.axis[1], take_axis(index, g.axis[1].places));
  made.d = place(g.axis[0], take_axis(index, g.axis[0].places));
  made.base = index * g.x_strides[0] + made.d * g.x_strides[2] + made.h * g.x_strides[3] +
              made.v * g.x_strides[4];
  return made;
}

/// Returns the decoded term `index`: its offset from a pixel's first tap, and its position in w;
/// no_entry from `end` on. Channels are innermost or taps are, to match x's contiguous axis. With
/// channels innermost, Together channels are one term.
template <bool ChannelsInnermost, int Together = 1>
__device__ __forceinline__ Entry gathered_term(const Gathered& g, std::int64_t index,
                                               std::int64_t end) {
  if (index >= end) return no_entry;
  std::int64_t q = 0;
  if constexpr (ChannelsInnermost) q = take_axis(index, g.q / Together) * Together;
  const std::int64_t v = take_axis(index, g.axis[2].kernel);
  const std::int64_t h = take_axis(index, g.axis[1].kernel);
  const std::int64_t d = ChannelsInnermost ? index : take_axis(index, g.axis[0].kernel);
  if constexpr (!ChannelsInnermost) q = index;
  Entry made{};
  made.d = static_cast<int>(d * g.axis[0].between);
  made.h = static_cast<int>(h * g.axis[1].between);
  made.v = static_cast<int>(v * g.axis[2].between);
  made.image = q * g.x_strides[1] + made.d * g.x_strides[2] + made.h * g.x_strides[3] +
               made.v * g.x_strides[4];
  made.other = q * g.w_strides[1] + d * g.w_strides[2] + h * g.w_strides[3] + v * g.w_strides[4];
  return made;
}

/// Epilogue of a sum: bias, activation and store to y. With several slices sums are stored as they
/// are.
template <class T>
class LayerEpilogue {
  using Sum = Accumulator<T>;
  const Gathered& g_;
  T* y_;
  Sum* partial_;
  const T* bias_;
  std::int64_t group_;
  bool sliced_;

 public:
  __device__ __forceinline__ LayerEpilogue(const Gathered& g, const TermSlices& slices,
                                           std::int64_t group)
      : g_(g),
        y_(static_cast<T*>(g.y) + group * g.m * g.y_strides[1]),
        partial_(static_cast<Sum*>(g.y) +
                 blockIdx.z % static_cast<unsigned>(slices.count) * slices.elements +
                 group * g.m * g.y_strides[1]),
        bias_(static_cast<const T*>(g.bias)),
        group_(group),
        sliced_(slices.count > 1) {}

  /// Returns the offset of a pixel from y's first element.
  [[nodiscard]] __device__ __forceinline__ std::int64_t place(std::int64_t pixel) const {
    std::int64_t at = take_axis(pixel, g_.axis[2].places) * g_.y_strides[4];
    at += take_axis(pixel, g_.axis[1].places) * g_.y_strides[3];
    at += take_axis(pixel, g_.axis[0].places) * g_.y_strides[2];
    return at + pixel * g_.y_strides[0];
  }
  __device__ __forceinline__ void store(std::int64_t place, std::int64_t filter, Sum sum) const {
    if (filter >= g_.m) return;
    const std::int64_t at = place + filter * g_.y_strides[1];
    if (sliced_) {
      partial_[at] = sum;
      return;
    }
    if (bias_ != nullptr) sum += convert<Sum>(bias_[(group_ * g_.m + filter) * g_.bias_stride]);
    y_[at] = convert<T>(activate<T>(g_.activation, sum));
  }
};

// --- on the host ---------------------------------------------------------------------------------

/// Returns supported for layers that tiles of rows x columns can index.
inline Support supports_gathered(const Gathered& g, std::int64_t rows, std::int64_t columns) {
  if (!has_small_places(g)) {
    return unsupported("extents, paddings and taps of up to 2^28, channels of up to 2^31 - 1");
  }
  if (ceil_div(g.m, rows) * g.groups > 0xffff || ceil_div(g.pixels(), columns) > 0x7fffffff) {
    return unsupported("more tiles than a grid has blocks");
  }
  return conv_layer::phases_of(g) <= 0xffff ? supported
                                            : unsupported("strides that leave up to 65535 phases");
}

/// Returns the number of tiles of all phases and groups.
inline double tiles_of(const Gathered& g, int rows, int columns) {
  return static_cast<double>(ceil_div(conv_layer::phase_pixels(g), columns)) *
         static_cast<double>(ceil_div(g.m, rows)) * static_cast<double>(g.groups) *
         static_cast<double>(conv_layer::phases_of(g));
}

/// Returns a grid with one block per tile of rows x columns (filters x pixels), of all groups,
/// phases and slices.
inline LaunchShape tile_grid(const Gathered& g, const TermSlices& slices, int rows, int columns,
                             std::size_t shared_bytes) {
  return {.grid = {ceil_div(conv_layer::phase_pixels(g), columns), ceil_div(g.m, rows) * g.groups,
                   conv_layer::phases_of(g) * slices.count},
          .block = block_threads,
          .shared_bytes = shared_bytes};
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
