// SPDX-License-Identifier: Apache-2.0
// A gathered layer as the operands of a tile: rows are filters, columns pixels, k the terms.
#pragma once

#include <cmath>

#include "rung/ops/conv/shared/cuda/layer.hpp"
#include "rung/ops/conv/shared/cuda/term_slices.hpp"
#include "rung/ops/conv/shared/cuda/tiles.hpp"
#include "rung/ops/conv/shared/phases.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

/// A pixel: where its first tap would lie.
struct GatheredPixel {
  std::int64_t base;
  int d, h, v;
};

/// Terms in the order that x is contiguous in: taps innermost, or channels.
template <class T, class S, bool ChannelsInnermost>
struct GatheredSource {
  using Sum = Accumulator<T>;
  static constexpr bool rows_by_k = true;
  static constexpr bool columns_by_k = ChannelsInnermost;
  static constexpr int pixels = ChannelsInnermost ? S::column_slots : 1;

  const Gathered& g;
  const T* x;
  const T* w;
  std::int64_t filters;  // from the tile's first one on
  // In registers: a layer in shared memory would be read again for each element.
  std::int64_t w_stride;
  unsigned depth, height, width;  // of the image
  GatheredPixel pixel[pixels];

  __device__ GatheredSource(const Gathered& layer, std::int64_t group, std::int64_t first_filter,
                            std::int64_t first_pixel)
      : g(layer),
        x(static_cast<const T*>(layer.x) + group * layer.q * layer.x_strides[1]),
        w(static_cast<const T*>(layer.w) + group * layer.w_group +
          first_filter * layer.w_strides[0]),
        filters(layer.m - first_filter),
        w_stride(layer.w_strides[0]),
        depth(static_cast<unsigned>(layer.axis[0].extent)),
        height(static_cast<unsigned>(layer.axis[1].extent)),
        width(static_cast<unsigned>(layer.axis[2].extent)) {
#pragma unroll
    for (int i = 0; i < pixels; ++i) {
      const int at = loaded<ChannelsInnermost, S::columns, S::depth>(i).at;
      pixel[i] = pixel_at(first_pixel + at);
    }
  }

  __device__ __forceinline__ GatheredPixel pixel_at(std::int64_t index) const {
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

  __device__ __forceinline__ void refill(Entry& entry, std::int64_t term, std::int64_t end) const {
    if (term >= end) {
      entry = {0, -1, outside, outside, outside, 0};
      return;
    }
    std::int64_t q = 0;
    if constexpr (ChannelsInnermost) q = take_axis(term, g.q);
    const std::int64_t v = take_axis(term, g.axis[2].kernel);
    const std::int64_t h = take_axis(term, g.axis[1].kernel);
    const std::int64_t d = take_axis(term, g.axis[0].kernel);
    if constexpr (!ChannelsInnermost) q = term;
    Entry made{};
    made.d = static_cast<int>(d * g.axis[0].between);
    made.h = static_cast<int>(h * g.axis[1].between);
    made.v = static_cast<int>(v * g.axis[2].between);
    made.image = q * g.x_strides[1] + made.d * g.x_strides[2] + made.h * g.x_strides[3] +
                 made.v * g.x_strides[4];
    made.other = q * g.w_strides[1] + d * g.w_strides[2] + h * g.w_strides[3] + v * g.w_strides[4];
    entry = made;
  }

  [[nodiscard]] __device__ __forceinline__ Sum row(int slot, const Entry& entry) const {
    const int at = loaded<true, S::rows, S::depth>(slot).at;
    if (entry.other < 0 || at >= filters) return Sum(0);
    return convert<Sum>(w[at * w_stride + entry.other]);
  }

  [[nodiscard]] __device__ __forceinline__ Sum column(int slot, const Entry& entry) const {
    const GatheredPixel& from = pixel[ChannelsInnermost ? slot : 0];
    const int d = from.d + entry.d;
    const int h = from.h + entry.h;
    const int v = from.v + entry.v;
    const bool inside = static_cast<unsigned>(d) < depth && static_cast<unsigned>(h) < height &&
                        static_cast<unsigned>(v) < width;
    return inside ? convert<Sum>(x[from.base + entry.image]) : Sum(0);
  }
};

/// A block's tile of a layer, from loads to stores: blockIdx.x counts tiles of pixels, blockIdx.y
/// those of filters, of all groups, blockIdx.z slices of the terms, and phases.
template <class T, class S>
__device__ __forceinline__ void gathered_tile(const Gathered& g, const TermSlices& slices) {
  using Sum = Accumulator<T>;
  auto& strips = shared<Strips<Sum, S>>();
  const auto tiles = static_cast<unsigned>(ceil_div(g.m, S::rows));
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = std::int64_t{blockIdx.y % tiles} * S::rows;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * S::columns;
  if (first_pixel >= g.pixels()) return;
  const GatheredSource<T, S, S::swapped> source(g, group, first_filter, first_pixel);
  const TermRange terms = terms_of_block(slices, g.terms(), S::depth);
  Sum sums[S::thread_rows][S::thread_columns] = {};
  multiply_tile<S>(source, strips, terms.begin, terms.end, sums);

  const std::int64_t of_group = group * g.m * g.y_strides[1];
  T* const y = static_cast<T*>(g.y) + of_group;
  Sum* const partial = static_cast<Sum*>(g.y) +
                       blockIdx.z % static_cast<unsigned>(slices.count) * slices.elements +
                       of_group;
  const auto* bias = static_cast<const T*>(g.bias);
#pragma unroll
  for (int j = 0; j < S::thread_columns; ++j) {
    std::int64_t index = first_pixel + S::column(j);
    if (index >= g.pixels()) continue;
    std::int64_t at = take_axis(index, g.axis[2].places) * g.y_strides[4];
    at += take_axis(index, g.axis[1].places) * g.y_strides[3];
    at += take_axis(index, g.axis[0].places) * g.y_strides[2];
    at += index * g.y_strides[0];
#pragma unroll
    for (int i = 0; i < S::thread_rows; ++i) {
      const std::int64_t filter = first_filter + S::row(i);
      if (filter >= g.m) continue;
      Sum sum = sums[i][j];
      if (slices.count > 1) {
        partial[at + filter * g.y_strides[1]] = sum;
        continue;
      }
      if (bias != nullptr) sum += convert<Sum>(bias[(group * g.m + filter) * g.bias_stride]);
      y[at + filter * g.y_strides[1]] = convert<T>(activate<T>(g.activation, sum));
    }
  }
}

// --- on the host ---------------------------------------------------------------------------------

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

template <class S>
LaunchShape tile_grid(const Gathered& g, const TermSlices& slices, std::size_t shared_bytes) {
  return {.grid = {ceil_div(conv_layer::phase_pixels(g), S::columns),
                   ceil_div(g.m, S::rows) * g.groups, conv_layer::phases_of(g) * slices.count},
          .block = block_threads,
          .shared_bytes = shared_bytes};
}

constexpr int few_rows = 16;
constexpr double enough_tiles = 132;  // one for each SM of a large device

/// Tiles of all phases and groups.
inline double tiles_of(const Gathered& g, int rows, int columns) {
  return static_cast<double>(ceil_div(conv_layer::phase_pixels(g), columns)) *
         static_cast<double>(ceil_div(g.m, rows)) * static_cast<double>(g.groups) *
         static_cast<double>(conv_layer::phases_of(g));
}

struct TileSize {
  int rows, columns, depth;
};
/// The tile that fits a call's type and filters.
inline TileSize tile_size(const Gathered& g) {
  if (g.dtype == DType::f32) {
    if (g.m <= few_rows) return {few_rows, 128, 16};
    if (g.m > 64 && tiles_of(g, 128, 128) >= enough_tiles) return {128, 128, 8};
  }
  return {64, 64, 16};
}
inline TermSlices slices_of(const Gathered& g, const TileSize& size) {
  return slices_of(g, tiles_of(g, size.rows, size.columns), size.depth);
}

/// f.template operator()<S>() with the shape of tile_size() and the layout of a call of type T.
template <class T, class F>
void with_tile(const Gathered& g, F&& f) {
  const TileSize size = tile_size(g);
  const auto shaped = [&]<int Rows, int Columns, int Depth>() {
    if (g.y_strides[1] == 1) return f.template operator()<Shape<Rows, Columns, true, Depth>>();
    return f.template operator()<Shape<Rows, Columns, false, Depth>>();
  };
  if constexpr (sizeof(T) == 4) {
    if (size.rows == few_rows) return shaped.template operator()<few_rows, 128, 16>();
    if (size.rows == 128) return shaped.template operator()<128, 128, 8>();
  }
  return shaped.template operator()<64, 64, 16>();
}

/// What a call takes at least, however few tiles there are: a block waits for its strips of terms,
/// one after another; then partial sums are added. As measured on an H100.
inline double waiting_seconds(const Gathered& g, const Context& context) {
  const TileSize size = tile_size(g);
  const TermSlices slices = slices_of(g, size);
  auto terms = static_cast<double>(g.q);  // of the first phase, which has the most
  for (const SourceAxis& axis : g.axis) {
    terms *= static_cast<double>(
        ceil_div(axis.kernel, larger(conv_layer::phases_along(axis), std::int64_t{1})));
  }
  const double of_step = size.depth == 8 ? 0.54e-6 : 1.0e-6;
  const double steps = std::ceil(terms / static_cast<double>(slices.count) / size.depth);
  const double start = 8.5e-6 + (g.y_strides[1] == 1 ? 3.5e-6 : 0) + (is_divided(g) ? 2e-6 : 0);
  double adding = 0;
  if (slices.count > 1) {
    Cost sums;
    sums.bytes = 2 * static_cast<double>(slices.count) * static_cast<double>(slices.elements) *
                 (g.dtype == DType::f64 ? 8 : 4);
    adding = 3e-6 + estimate_seconds(sums, {.bandwidth = 0.25, .launches = 0}, context);
  }
  return start + of_step * steps + adding;
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
