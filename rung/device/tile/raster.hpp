// SPDX-License-Identifier: Apache-2.0
// Raster: the tiles of a matrix product, numbered: those of C, of every matrix of a batch and every
// slice of k. The order keeps operands in L2: going down `band` rows of tiles before along them,
// those in flight at one time share rows of A and columns of B.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET {

/// The tile's row and column in units of tiles, its matrix of the batch, its slice of k.
struct TileWork {
  int row, column, batch, slice;
};

struct Raster {
  int down, along;  // tiles of one matrix
  int batch;
  int slices;
  int band;       // rows of tiles
  int whole = 0;  // so many tiles, the first, are not sliced

  [[nodiscard]] RUNG_HD int tiles() const { return down * along * batch; }
  /// The works: tiles that are not sliced, then slice behind slice of all others.
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

/// Rows of tiles for a band such that the part of C that is worked on at a time is about a square,
/// which needs the least of A and B for its size. `at_once`: tiles.
inline int raster_band(std::int64_t at_once, int tile_rows, int tile_columns) {
  const double band = std::sqrt(static_cast<double>(at_once) * tile_columns / tile_rows);
  return larger(static_cast<int>(band + 0.5), 1);
}

}  // namespace rung::inline RUNG_TARGET
