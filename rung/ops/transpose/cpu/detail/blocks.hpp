// SPDX-License-Identifier: Apache-2.0
// A call cut into blocks for the vector kernels, numbered, so that threads can share them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/cpu/team.hpp"
#include "rung/ops/transpose/cpu/detail/elements.hpp"
#include "rung/ops/transpose/cpu/detail/engine.hpp"

namespace rung::transpose_cpu {

/// An extent cut into parts of up to `most`, which begin at multiples of a tile's side and are
/// never smaller than a tile unless the matrix is: what is left over at the end goes with the last,
/// and is done by reaching back.
struct Cuts {
  std::int64_t extent, side, count;

  Cuts(std::int64_t all, std::int64_t most, std::int64_t tile)
      : extent(all),
        side(tile),
        count(std::max<std::int64_t>(std::min((all + most - 1) / most, all / tile), 1)) {}
  [[nodiscard]] std::int64_t begin(std::int64_t part) const {
    if (part == 0) return 0;
    if (part == count) return extent;
    const std::int64_t tiles = extent / side;
    return (tiles / count * part + std::min(part, tiles % count)) * side;
  }
};

/// A call's blocks. Down first: blocks that follow each other write neighboring parts of the same
/// rows of y.
struct Grid {
  Cuts down, across;
  std::int64_t matrices;

  Grid(const Moves& m, std::int64_t rows, std::int64_t columns, std::int64_t side = 1)
      : down(m.rows, rows, side), across(m.columns, columns, side), matrices(m.matrices()) {}
  [[nodiscard]] std::int64_t size() const { return down.count * across.count * matrices; }
};

/// Where a block lies.
struct Place {
  std::int64_t matrix, row, rows, column, columns;
};

/// Calls each(place) for the blocks of a range. Counted on, as divisions take longer than a small
/// block.
template <class Each>
void for_each_block(const Grid& grid, cpu::Range range, Each&& each) {
  std::int64_t i = 0, j = 0, matrix = 0;
  if (range.begin > 0) {
    i = range.begin % grid.down.count;
    j = range.begin / grid.down.count % grid.across.count;
    matrix = range.begin / grid.down.count / grid.across.count;
  }
  for (std::int64_t left = range.size(); left > 0; --left) {
    const std::int64_t row = grid.down.begin(i);
    const std::int64_t column = grid.across.begin(j);
    each(Place{matrix, row, grid.down.begin(i + 1) - row, column,
               grid.across.begin(j + 1) - column});
    if (++i < grid.down.count) continue;
    i = 0;
    if (++j < grid.across.count) continue;
    j = 0;
    ++matrix;
  }
}

inline Support require_dense(const Transpose::Args& args, const Context&) {
  if (args.moves.empty() || args.moves.dense()) return supported;
  return unsupported("x and y must each be dense along one axis, and not along the same");
}

/// A block of any matrix, element by element.
template <class T>
void move_block(const Transpose::Args& args, const Place& place) {
  const Moves& m = args.moves;
  std::int64_t at[2];
  m.batch.offsets(place.matrix, at);
  const T* x = elements<T>(args.x) + at[1] + place.row * m.x_row + place.column * m.x_column;
  T* y = elements<T>(args.y) + at[0] + place.column * m.y_row + place.row * m.y_column;
  for (std::int64_t j = 0; j < place.columns; ++j) {
    for (std::int64_t i = 0; i < place.rows; ++i) {
      const T* from = x + i * m.x_row + j * m.x_column;
      T* to = y + j * m.y_row + i * m.y_column;
      for (std::int64_t r = 0; r < m.run; ++r) to[r] = from[r];
    }
  }
}

/// A block of a dense matrix in the terms of the kernels.
inline Block block_of(const Transpose::Args& args, const Place& place) {
  const Moves& m = args.moves;
  const std::int64_t bytes = m.element_bytes;
  std::int64_t at[2];
  m.batch.offsets(place.matrix, at);
  return {elements<std::byte>(args.x) + (at[1] + place.row * m.x_row + place.column) * bytes,
          elements<std::byte>(args.y) + (at[0] + place.column * m.y_row + place.row) * bytes,
          m.x_row * bytes,
          m.y_row * bytes,
          place.rows,
          place.columns,
          m.element_bytes};
}

/// What a block has at most, in tiles, when y is written through the caches.
inline constexpr std::int64_t tiles_down = 64;
inline constexpr std::int64_t tiles_across = 16;

/// Each matrix of the batch is a block of its own.
inline bool is_one_block(const Moves& m) {
  return m.rows * m.element_bytes <= tiles_down * line_bytes &&
         m.columns * m.element_bytes <= tiles_across * line_bytes;
}
/// Those of a range: along the last axis of the batch they are a constant distance apart.
inline void transpose_matrices(const Transpose::Args& args, cpu::Range range) {
  const Moves& m = args.moves;
  const int last = m.batch.rank - 1;
  for (std::int64_t at = range.begin; at < range.end;) {
    const std::int64_t along = last < 0 ? 1 : last == 0 ? range.end : m.batch.shape[last];
    const std::int64_t count = std::min(range.end - at, last <= 0 ? along : along - at % along);
    const std::int64_t x_matrix = last < 0 ? 0 : m.batch.strides[1][last] * m.element_bytes;
    const std::int64_t y_matrix = last < 0 ? 0 : m.batch.strides[0][last] * m.element_bytes;
    transpose_blocks(block_of(args, {at, 0, m.rows, 0, m.columns}), count, x_matrix, y_matrix);
    at += count;
  }
}

/// The grids of the two ways to write y. Through the caches, columns of 64 tiles, 16 in parallel:
/// y is written row by row, and the lines of x that come along with those asked for are still in L2
/// when the next column needs them. Tried on a 2-core Zen 5 vCPU: 16 x 16 tiles -10 % where rows
/// are a power of two apart, +5 % within L2; 2 x 2 tiles +15 % at 512 x 512 f32, -50 % at 2048 x
/// 2048; rows of tiles in place of columns -20 to -60 %; fetching lines of x or y ahead: nothing.
inline Grid cached_grid(const Moves& m) {
  const std::int64_t side = line_bytes / m.element_bytes;
  return {m, tiles_down * side, tiles_across * side, side};
}
/// Panels as long as possible: the first band of each has nothing fetched ahead. Those that are
/// taken down their rows have a page of y a row.
inline Grid streaming_grid(const Moves& m, std::int64_t rows) {
  const std::int64_t side = line_bytes / m.element_bytes;
  // Pixels and planes: what a block ends with, a wait until all stores are out, costs as much as
  // some hundred pixels.
  if (m.element_bytes <= max_interleaved_bytes) {
    constexpr std::int64_t pixels = 64 << 10;
    if (m.columns <= 4 && m.x_row == m.columns) return {m, pixels, 4, side};
    if (m.rows <= 4 && m.y_row == m.rows) return {m, 4, pixels, side};
  }
  if (goes_down(m.x_row * m.element_bytes, m.element_bytes)) {
    rows = panel_columns(m.element_bytes);
  }
  return {m, rows, panel_columns(m.element_bytes), side};
}

}  // namespace rung::transpose_cpu
