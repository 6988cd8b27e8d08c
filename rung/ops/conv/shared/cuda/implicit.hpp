// SPDX-License-Identifier: Apache-2.0
// The host side of the rungs implicit_gemm: the tile that suits a layer, its grid and its time.
#pragma once

#include <cmath>

#include "rung/ops/conv/shared/cuda/gather.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

constexpr int few_rows = 16;
constexpr double enough_tiles = 132;  // one for each SM of a large device

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
