// SPDX-License-Identifier: Apache-2.0
// Work (rung/core/work.hpp) of the kernels that compute a layer, or a gradient, as products of
// tiles: one block per tile and slice of its terms, which loops over strips of terms.
#pragma once

#include <cmath>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/operator.hpp"
#include "rung/device/block_work.hpp"
#include "rung/device/device.hpp"

namespace rung {

struct Tiling {
  double tiles;
  int rows, columns, depth;
  std::int64_t slices = 1;
  double sums = 0;  // bytes per slice, which another launch adds
};

/// Returns the work of a product with `terms` terms per element, on average.
inline Work tile_facts(const Cost& cost, const Tiling& t, Amount terms, int resident,
                       std::string_view path = "") {
  const auto slices = static_cast<double>(t.slices);
  const double strips = std::ceil(terms / slices / t.depth);
  return {.bytes = cost.bytes + 2 * slices * t.sums,
          .operations = 2 * t.tiles * slices * strips * t.depth * t.rows * t.columns,
          .launches = t.sums > 0 ? 2 : 1,
          .blocks = t.tiles * slices,
          .resident = resident,
          .rounds = strips,
          .path = path};
}

/// Returns the rates key of a kernel by its type and layout; `few`: the tile has few rows.
inline std::string_view tile_path(DType type, bool few, bool nhwc) {
  if (type == DType::f64) return "f64";
  if (size_of(type) == 2) return nhwc ? "16-bit nhwc" : "16-bit";
  if (few) return nhwc ? "few nhwc" : "few";
  return nhwc ? "nhwc" : "";
}

/// Returns the work of blocks of 256 threads, each of which issues `loads` loads in sequence.
inline Work block_facts(const LaunchExtent& grid, Amount loads) {
  return {.blocks = grid.x * grid.y * grid.z, .resident = 8, .rounds = loads};
}

/// Returns the work of blocks whose threads each add `terms` terms in sequence. Of these, `rows`
/// read the first element of a row, from L2; the others find their line in L1, in a quarter of the
/// time. The elements that adjacent lanes load are `apart` bytes apart. A load takes a cycle per
/// line, the other instructions of a term some eight.
inline Work term_facts(const LaunchExtent& grid, Amount terms, Amount rows, std::int64_t apart) {
  Work work = block_facts(grid, terms + 3 * rows);
  work.steps = terms * static_cast<double>(8 + lines_of_load(apart));
  return work;
}

/// Returns the work of two kernels in sequence, with the second's number of blocks.
inline Work in_turn(const Work& before, Work next) {
  next.operations = before.operations + next.operations;
  next.launches = before.launches + next.launches;
  next.rounds = before.rounds + next.rounds;
  return next;
}

}  // namespace rung
