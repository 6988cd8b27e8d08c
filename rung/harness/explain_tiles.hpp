// SPDX-License-Identifier: Apache-2.0
// Tile sizes of CPU rungs, whose accesses are not counted by a simulator. `rung explain` computes
// from them how often a product's operands are loaded (rung/bench/reuse.hpp).
//
//   ExplainProduct tiles_of(const Problem& problem) { ... }
//   const ExplainTiles<Gemm> explain_tiles{tiles_of};
//
// Declared once per operator. For other operators `rung explain` omits these figures.
#pragma once

#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/harness/problem.hpp"

namespace rung {

struct ExplainTile {
  std::string_view rung;
  // Extents of the tile of C whose sums are in registers. 0: all rows, or all columns.
  double rows = 0, columns = 0;
  // Extents of the tile of C whose operands stay in a cache. 0: all rows, or all columns.
  double cache_rows = 0, cache_columns = 0;
  bool sums_move = false;  // each multiply-add loads and stores its sum
};

/// A product C = A B of m x k and k x n elements, with the tiles of its rungs.
struct ExplainProduct {
  double m = 0, k = 0, n = 0;
  std::vector<ExplainTile> tiles;  // of rungs with known tiles
};

class RUNG_API AnyExplainTiles {
 public:
  using Function = ExplainProduct (*)(const Problem&);
  AnyExplainTiles(const AnyExplainTiles&) = delete;
  AnyExplainTiles& operator=(const AnyExplainTiles&) = delete;

  /// Returns the tiles that an operator declares; none by default.
  static ExplainProduct of(std::string_view op, const Problem& problem);

 protected:
  AnyExplainTiles(std::string_view op, Function function);
  ~AnyExplainTiles() = default;

 private:
  std::string_view op_;
  Function function_;
  const AnyExplainTiles* next_;
};

template <class Op>
class ExplainTiles : public AnyExplainTiles {
 public:
  explicit ExplainTiles(Function function) : AnyExplainTiles(Op::name, function) {}
};

}  // namespace rung
