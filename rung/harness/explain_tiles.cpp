// SPDX-License-Identifier: Apache-2.0
// Registry of the tile sizes that operators declare by explain_tiles.hpp.
#include "rung/harness/explain_tiles.hpp"

namespace rung {
namespace {
constinit const AnyExplainTiles* first_tiles = nullptr;
}

AnyExplainTiles::AnyExplainTiles(std::string_view op, Function function)
    : op_(op), function_(function), next_(first_tiles) {
  first_tiles = this;
}

ExplainProduct AnyExplainTiles::of(std::string_view op, const Problem& problem) {
  for (const AnyExplainTiles* one = first_tiles; one != nullptr; one = one->next_) {
    if (one->op_ == op) return one->function_(problem);
  }
  return {};
}

}  // namespace rung
