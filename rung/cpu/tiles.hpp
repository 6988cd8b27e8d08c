// SPDX-License-Identifier: Apache-2.0
//
// Tiles: partition of a batch of arrays into bands of rows and panels of columns, as units of work
// for a team. Depends on the shape only, never on the number of threads, so that results that
// depend on summation order are repeatable. Tiles are numbered panel by panel within a band, then
// band by band within an array. Owns no memory; finding a tile takes four divisions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/core/integer.hpp"

namespace rung::cpu {

struct ArrayTile {
  std::int64_t array;
  std::int64_t first_row, rows;
  std::int64_t first_column, columns;
};

struct Tiles {
  std::int64_t arrays, rows, columns;  // batch size, and shape of each array
  std::int64_t band, panel;            // rows and columns per tile; the last tiles may have fewer

  [[nodiscard]] std::int64_t count() const {
    return arrays * ceil_div(rows, band) * ceil_div(columns, panel);
  }
  /// Returns tile `index` of [0, count()).
  [[nodiscard]] ArrayTile operator[](std::int64_t index) const {
    const std::int64_t panels = ceil_div(columns, panel);
    const std::int64_t bands = ceil_div(rows, band);
    const std::int64_t first_column = index % panels * panel;
    const std::int64_t first_row = index / panels % bands * band;
    return {.array = index / panels / bands,
            .first_row = first_row,
            .rows = std::min(band, rows - first_row),
            .first_column = first_column,
            .columns = std::min(panel, columns - first_column)};
  }
};

}  // namespace rung::cpu
