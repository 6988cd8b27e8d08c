// SPDX-License-Identifier: Apache-2.0
// Raster: order of the tiles of a matrix product, over C, the matrices of a batch and the slices of
// k. Within a band of `band` rows of tiles the order is column by column, so that tiles in flight
// share rows of A and columns of B, which stay in L2.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET {

/// A unit of work: row and column in units of tiles, matrix of the batch, slice of k.
struct TileWork {
  int row, column, batch, slice;
};

struct Raster {
  int down, along;  // tiles of one matrix
  int batch;
  int slices;
  int band;       // rows of tiles
  int whole = 0;  // the first `whole` tiles are not sliced

  [[nodiscard]] RUNG_HD int tiles() const { return down * along * batch; }
  /// Returns the number of units: whole tiles, then all other tiles slice by slice.
  [[nodiscard]] RUNG_HD int total() const { return whole + (tiles() - whole) * slices; }
  [[nodiscard]] __device__ TileWork at(int number) const {
    int slice = 0;
    if (number >= tiles()) {
      const int sliced = tiles() - whole;
      slice = (number - whole) / sliced;
      number -= slice * sliced;
    }
    const int matrix = number / (down * along);
    const int tile = number - matrix * (down * along);
    const int first = tile / (band * along) * band;
    const int rows = smaller(band, down - first);
    const int within = tile - first * along;
    return {first + within % rows, within / rows, matrix, slice};
  }
};

/// Returns the number of rows of tiles per band for which the part of C in flight (`at_once` tiles)
/// is about square: of all rectangles of this area, a square reads the least of A and B.
inline int raster_band(std::int64_t at_once, int tile_rows, int tile_columns) {
  const double band = std::sqrt(static_cast<double>(at_once) * tile_columns / tile_rows);
  return larger(static_cast<int>(band + 0.5), 1);
}

}  // namespace rung::inline RUNG_TARGET
