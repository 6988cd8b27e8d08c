// SPDX-License-Identifier: Apache-2.0
// transpose / simd
//
// Idea     A tile of 16 x 16 (4-byte elements; 64 x 64 of one byte, 4 x 4 of 16) is transposed in
//          registers: whole lines are loaded, interleaved, and whole lines are stored.
// Changes  Against blocked: 64 bytes per instruction, and no line has to survive in the cache,
//          since a tile uses all elements of its lines at once; hence more than 5x in one step.
// Cost     4-byte elements: 4 loads, 5 shuffles and a store per 64 bytes, with AVX-512.
// Limits   One thread. A line of y is loaded before it is overwritten (write-allocate): half as
//          much traffic again. x and y must each be dense along one axis.
// Source   J. McCalpin and M. Smotherman, "Automatic benchmark generation for cache optimization of
//          matrix operations", 1995, for the blocks; the rounds are a perfect shuffle (H. Stone,
//          IEEE Trans. Comp. C-20, 1971).
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>

#include "rung/cpu/transpose_tile-inl.hpp"
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {
namespace {
using namespace cpu::HWY_NAMESPACE;

/// Transposes a column of tiles, or only its first 4 `groups` 16-byte groups of columns. The last
/// tile is a full one that overlaps the previous tile.
template <int bytes, int groups>
HWY_INLINE void tiles_down(TransposeBlock b, std::int64_t column) {
  constexpr std::int64_t side = tile_side<bytes>;
  for (std::int64_t i = 0; i < b.rows; i += side) {
    const std::int64_t row = std::min(i, b.rows - side);
    transpose_tile<bytes>(b.x + row * b.x_row + column * bytes, b.x_row,
                          b.y + column * b.y_row + row * bytes, b.y_row, groups);
  }
}

template <int bytes>
HWY_NOINLINE void tiles(const TransposeBlock& b) {
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr std::int64_t group = 16 / bytes;
  if (b.rows < side || b.columns < group) {  // narrower than a tile: padded to one tile
    for (std::int64_t j = 0; j < b.columns; j += side) {
      for (std::int64_t i = 0; i < b.rows; i += side) {
        transpose_part<bytes>(b.x + i * b.x_row + j * bytes, b.x_row, b.y + j * b.y_row + i * bytes,
                              b.y_row, std::min(side, b.rows - i), std::min(side, b.columns - j));
      }
    }
    return;
  }
  const std::int64_t left = b.columns % side;
  const bool has_half = left <= 2 * group || b.columns < side;
  for (std::int64_t j = 0; j + (has_half ? side : 1) <= b.columns; j += side) {
    tiles_down<bytes, 4>(b, std::min(j, b.columns - side));
  }
  for (std::int64_t j = b.columns - left; has_half && j < b.columns; j += group) {
    tiles_down<bytes, 1>(b, std::min(j, b.columns - group));
  }
}

}  // namespace

void tiles_of_batch(const TransposeBlock& first, const Batch& batch) {
  with_elements(first.element_bytes, [&]<class T>() HWY_ATTR {
    TransposeBlock b = first;
    for (std::int64_t i = 0; i < batch.count; ++i, b.x += batch.x, b.y += batch.y) {
      tiles<sizeof(T)>(b);
    }
  });
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace transpose_cpu {
HWY_EXPORT(tiles_of_batch);
void transpose_tiles(const TransposeBlock& block, const Batch& batch) {
  HWY_DYNAMIC_DISPATCH(tiles_of_batch)(block, batch);
}
}  // namespace transpose_cpu

namespace {
using namespace transpose_cpu;

void run(const Transpose::Args& args, Context&) {
  const Grid grid = cached_grid(args.moves);
  grid.for_each({0, grid.size()},
                [&](const BlockRange& block) { transpose_tiles(block_of(args, block)); });
}

const Rung<Transpose> self{{.name = "simd",
                            .step = 30,
                            .after = "blocked",
                            .teaching = true,
                            .supports = require_dense,
                            .run = run}};

}  // namespace
}  // namespace rung
#endif
