// SPDX-License-Identifier: Apache-2.0
// Facts of a rung whose blocks have some queries of one head each and walk over its keys.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/operator.hpp"
#include "rung/ops/attention/op/attention.hpp"

namespace rung::attention_cuda {

/// Tile of a block.
struct QueryTiles {
  int rows;      // queries
  int keys;      // of a tile
  double width;  // of a row of Q and of V, as computed
  int resident;  // blocks of an SM
  std::string_view path;
};

/// A block computes for all of its rows, whether they exist or not, and waits for every tile of the
/// keys that a query sees on average.
inline Work facts_of(const Attention::Args& args, const QueryTiles& tiles) {
  const auto queries = static_cast<double>(args.queries());
  const double seen = args.visible_pairs() / (queries > 1 ? queries : 1);
  const double rounds = std::ceil(seen / tiles.keys);
  const double blocks = static_cast<double>(args.batch()) * static_cast<double>(args.heads()) *
                        std::ceil(queries / tiles.rows);
  return {.operations = 2 * blocks * tiles.rows * rounds * tiles.keys * tiles.width,
          .blocks = blocks,
          .resident = tiles.resident,
          .rounds = rounds,
          .steps = rounds,
          .path = tiles.path};
}

/// The paths of kernels that are compiled for widths of 64, 128 and 256.
inline std::string_view path_of_width(int width) {
  return width == 64 ? "64" : width == 128 ? "128" : "256";
}

}  // namespace rung::attention_cuda
