// SPDX-License-Identifier: Apache-2.0
// Partition of a transpose into numbered blocks for threads, and kernels that two rungs use, each
// defined in the rung that introduces it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/cpu/short_copy.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/transpose/op/transpose.hpp"

namespace rung::transpose_cpu {

using Moves = Transpose::Moves;
using cpu::line_bytes;

/// Opaque element of 16 bytes.
struct Wide {
  std::uint64_t halves[2];
};

/// Calls f.template operator()<T>() with an opaque T of `bytes` bytes.
template <class F>
void with_elements(int bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    case 8:
      return f.template operator()<std::uint64_t>();
    default:
      return f.template operator()<Wide>();
  }
}

/// Partition of an extent into parts of up to `most`, which start at multiples of a tile's side. No
/// part is smaller than a tile unless the matrix is: the remainder belongs to the last part, whose
/// last tile overlaps the previous one.
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

/// Rows and columns of one matrix of the batch.
struct BlockRange {
  std::int64_t matrix, row, rows, column, columns;
};

/// Partition of all matrices into blocks, numbered down first: consecutive blocks write neighboring
/// parts of the same rows of y.
struct Grid {
  Cuts down, across;
  std::int64_t matrices;

  Grid(const Moves& m, std::int64_t rows, std::int64_t columns, std::int64_t side = 1)
      : down(m.rows, rows, side), across(m.columns, columns, side), matrices(m.matrices()) {}
  [[nodiscard]] std::int64_t size() const { return down.count * across.count * matrices; }

  /// Calls each(block) for a range of blocks. Increments indices, since divisions take longer than
  /// a small block.
  template <class Each>
  void for_each(cpu::Range range, Each&& each) const {
    std::int64_t i = 0, j = 0, matrix = 0;
    if (range.begin > 0) {
      i = range.begin % down.count;
      j = range.begin / down.count % across.count;
      matrix = range.begin / down.count / across.count;
    }
    for (std::int64_t left = range.size(); left > 0; --left) {
      const std::int64_t row = down.begin(i);
      const std::int64_t column = across.begin(j);
      each(BlockRange{matrix, row, down.begin(i + 1) - row, column, across.begin(j + 1) - column});
      if (++i < down.count) continue;
      i = 0;
      if (++j < across.count) continue;
      j = 0;
      ++matrix;
    }
  }
};

/// A matrix of opaque elements to transpose: y(j, i) = x(i, j), with dense rows in x and y.
struct TransposeBlock {
  const std::byte* x;
  std::byte* y;
  std::int64_t x_row, y_row;   // bytes between row starts
  std::int64_t rows, columns;  // extents of x
  int element_bytes;           // 1, 2, 4, 8 or 16
};
/// A batch of equal matrices at constant byte offsets in x and y.
struct Batch {
  std::int64_t count = 1;
  std::int64_t x = 0, y = 0;
};

/// Returns a block of the matrices of args, whose rows must be dense.
inline TransposeBlock block_of(const Transpose::Args& args, const BlockRange& range) {
  const Moves& m = args.moves;
  const std::int64_t bytes = m.element_bytes;
  std::int64_t at[2];
  m.batch.offsets(range.matrix, at);
  return {
      static_cast<const std::byte*>(args.x.data) +
          (at[1] + range.row * m.x_row + range.column) * bytes,
      static_cast<std::byte*>(args.y.data) + (at[0] + range.column * m.y_row + range.row) * bytes,
      m.x_row * bytes,
      m.y_row * bytes,
      range.rows,
      range.columns,
      m.element_bytes};
}

inline Support require_dense(const Transpose::Args& args, const Context&) {
  if (args.moves.empty() || args.moves.dense()) return supported;
  return unsupported("x and y must each be dense along one axis, and not along the same");
}

/// Returns a tile's width and height: one cache line of elements.
inline std::int64_t tile_side_of(const Moves& m) { return line_bytes / m.element_bytes; }
inline bool is_narrower_than_tile(const Moves& m) {
  return std::min(m.rows, m.columns) * m.element_bytes < line_bytes;
}
inline Support require_tiles(const Transpose::Args& args, const Context& context) {
  const Support dense = require_dense(args, context);
  if (!dense || args.moves.empty() || !is_narrower_than_tile(args.moves)) return dense;
  return unsupported("matrices of at least 64 bytes each way");
}

/// Returns whether the matrix has 2 to 4 columns or rows of elements of up to 4 bytes and is fully
/// dense: pixels or planes.
inline bool is_pixels(const Moves& m) {
  const auto few = [](std::int64_t extent) { return extent >= 2 && extent <= 4; };
  return m.element_bytes <= 4 &&
         ((few(m.columns) && m.x_row == m.columns) || (few(m.rows) && m.y_row == m.rows));
}

/// Returns whether x and y together exceed the last-level cache, so that caching either gains
/// nothing. A core reaches a slice of about 32 MiB of L3 on current servers, whatever total the
/// system reports (384 MiB on the 2-core Zen 5 vCPU of these measurements).
inline bool exceeds_caches(const Moves& m) { return 2 * m.bytes() >= std::int64_t{32} << 20; }

/// Blocks for ordinary stores, in tiles: 64 down, 16 across. y is written row by row, and the
/// loaded lines of x are still in L2 when the next column needs them. See EXPERIMENTS.md.
inline constexpr std::int64_t tiles_down = 64;
inline constexpr std::int64_t tiles_across = 16;
inline Grid cached_grid(const Moves& m) {
  const std::int64_t side = tile_side_of(m);
  return {m, tiles_down * side, tiles_across * side, side};
}

/// Bytes of a way of L1: lines at this distance map to one set of L1, and to few sets of L2.
inline constexpr std::int64_t way_bytes = 4096;
/// Returns the columns of a panel: 1024 rows of y are about as many pages as the second-level TLB
/// holds, and a row's part of x is at most one page.
constexpr std::int64_t panel_columns(int element_bytes) {
  return std::min<std::int64_t>(4096 / element_bytes, 1024);
}
/// Scratch bytes per thread for stream_along(): a line per column.
inline constexpr std::int64_t panel_scratch = panel_columns(1) * line_bytes;
/// Returns whether non-temporal stores go down the rows of x instead of along them: faster, but the
/// many rows in flight must not all map to the same sets, and tiles must fit L1.
inline bool goes_down(const Moves& m) {
  return m.element_bytes >= 4 && m.x_row * m.element_bytes % way_bytes != 0;
}
/// Returns panels for non-temporal stores, as long as possible, since the first band of each has
/// nothing prefetched. Panels processed down their rows have one page of y per row.
inline Grid streaming_grid(const Moves& m, std::int64_t rows) {
  constexpr std::int64_t pixels = 64 << 10;  // the fence after a block takes as long as 100 pixels
  if (is_pixels(m)) return {m, pixels, pixels, tile_side_of(m)};
  if (goes_down(m)) rows = panel_columns(m.element_bytes);
  return {m, rows, panel_columns(m.element_bytes), tile_side_of(m)};
}
inline constexpr std::int64_t any_rows = std::int64_t{1} << 62;

/// Returns the partition of any problem into blocks of 32 x 32 elements; move_blocks() moves some
/// of them. Rung 020.
Grid element_grid(const Moves& m);
void move_blocks(const Transpose::Args& args, cpu::Range blocks);
/// Transposes matrices of at least a tile in each direction, in whole 16-byte groups of columns.
/// Rung 030.
void transpose_tiles(const TransposeBlock& block, const Batch& batch = {});
/// Transposes the remainder of whole tiles: the last columns of some rows, as whole 16-byte groups
/// that overlap finished columns (4096x65 f32: 37 us instead of 40 for a full tile), and the last
/// rows.
inline void transpose_last_columns(const TransposeBlock& b, std::int64_t row, std::int64_t rows) {
  const std::int64_t side = line_bytes / b.element_bytes;
  const std::int64_t group = 16 / b.element_bytes;
  const std::int64_t left = b.columns % side;
  if (left == 0 || rows == 0) return;
  const std::int64_t columns = left <= 2 * group ? (left + group - 1) / group * group : side;
  const std::int64_t j = b.columns - columns;
  transpose_tiles({b.x + row * b.x_row + j * b.element_bytes,
                   b.y + j * b.y_row + row * b.element_bytes, b.x_row, b.y_row, rows, columns,
                   b.element_bytes});
}
inline void transpose_last_rows(const TransposeBlock& b) {
  const std::int64_t side = line_bytes / b.element_bytes;
  if (b.rows % side == 0) return;
  const std::int64_t row = b.rows - side;
  transpose_tiles({b.x + row * b.x_row, b.y + row * b.element_bytes, b.x_row, b.y_row, side,
                   b.columns, b.element_bytes});
}
/// Transposes like transpose_tiles(), through a buffer in L1. Rung 035.
void transpose_staged(const TransposeBlock& block);
/// Transpose like transpose_tiles(), with non-temporal stores and a fence after them, for up to
/// panel_columns() columns. Rungs 040, which needs panel_scratch bytes, aligned to a line, and 045.
void stream_along(const TransposeBlock& block, std::byte* scratch);
void stream_down(const TransposeBlock& block);
/// Kernels of shapes/: for matrices for which is_narrower_than_tile() or is_pixels() is true, and
/// for runs, which are divided into units.
void transpose_narrow(const TransposeBlock& block, const Batch& batch = {});
void transpose_pixels(const TransposeBlock& block, bool streams, const Batch& batch = {});
std::int64_t run_units(const Moves& m);
void copy_runs(const Transpose::Args& args, cpu::Range units);

}  // namespace rung::transpose_cpu
