// SPDX-License-Identifier: Apache-2.0
// Host side of the rungs implicit_gemm: the tile for a layer, its grid and its predicted time.
#pragma once

#include <cmath>

#include "rung/ops/conv/shared/cuda/gather.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

constexpr int few_rows = 16;
constexpr double enough_tiles = 132;  // one per SM of a large device

struct TileSize {
  int rows, columns, depth;
};
/// Returns the tile size for a layer's type, filters and pixels.
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

/// Calls f.template operator()<S>() with the shape of tile_size() and y's layout, for type T.
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

/// Returns the work of a layer in tiles of tile_size(), whose phases have `terms` terms on
/// average.
inline Work implicit_facts(const Gathered& g, const Cost& cost, Amount terms) {
  const TileSize size = tile_size(g);
  const TermSlices slices = slices_of(g, size);
  return tile_facts(
      cost,
      {tiles_of(g, size.rows, size.columns), size.rows, size.columns, size.depth, slices.count,
       sum_bytes(slices, g.dtype == DType::f64 ? 8 : 4)},
      terms, 3,
      size.rows == 128 ? "large" : tile_path(g.dtype, size.rows == few_rows, g.y_strides[1] == 1));
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
