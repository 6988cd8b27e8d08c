// SPDX-License-Identifier: Apache-2.0
// Facts of the kernels that make a layer, or a gradient, as products of tiles: a block per tile and
// slice of its terms, which it takes in strips, one after another.
#pragma once

#include <cmath>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/operator.hpp"

namespace rung {

struct Tiling {
  double tiles;
  int rows, columns, depth;
  std::int64_t slices = 1;
  double sums = 0;  // bytes of a slice's, which another launch adds
};

/// Returns the work of a product with so many terms per element, on average.
inline Work tile_facts(const Cost& cost, const Tiling& t, double terms, int resident,
                       std::string_view path) {
  const auto slices = static_cast<double>(t.slices);
  const double strips = std::ceil(terms / slices / t.depth);
  return {.bytes = cost.bytes + 2 * slices * t.sums,
          .operations = 2 * t.tiles * slices * strips * t.depth * t.rows * t.columns,
          .launches = t.sums > 0 ? 2 : 1,
          .blocks = t.tiles * slices,
          .resident = resident,
          .rounds = strips,
          .steps = strips,
          .path = path};
}

/// Returns the work of launches one after another, on as many blocks as the first.
inline Work in_turn(const Work& before, const Work& next) {
  Work both = next;
  both.operations = before.operations + next.operations;
  both.launches = before.launches + next.launches;
  both.rounds = before.rounds + next.rounds;
  both.steps = before.steps + next.steps;
  return both;
}

}  // namespace rung
