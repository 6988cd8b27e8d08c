// SPDX-License-Identifier: Apache-2.0
// What transpose's vector kernels do, in plain C++: they are compiled once for each instruction set
// in kernels.cpp, and called through this interface.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rung::transpose_cpu {

/// A cache line: what memory is read and written in.
inline constexpr std::int64_t line_bytes = 64;

/// A matrix of opaque elements whose transpose is written: y(j, i) = x(i, j), rows dense in both.
struct Block {
  const std::byte* x;
  std::byte* y;
  std::int64_t x_row, y_row;   // bytes from one row to the next
  std::int64_t rows, columns;  // of x
  int element_bytes;           // 1, 2, 4, 8 or 16
};

/// The same for runs of `run` bytes in place of elements, with any distances in bytes.
struct Runs {
  const std::byte* x;
  std::byte* y;
  std::int64_t x_row, x_column, y_row, y_column;
  std::int64_t rows, columns, run;
};

/// Through the caches, for what is in them and will be wanted there again. `staged`: by way of a
/// buffer in L1, which pays where rows compete for the same sets of it.
void transpose_block(const Block& block, bool staged = false);

/// A batch of `count` small matrices, each a number of bytes behind the one before.
void transpose_blocks(const Block& first, std::int64_t count, std::int64_t x_matrix,
                      std::int64_t y_matrix);

/// Past the caches: whole lines of y are written without being read first, and x is fetched ahead.
/// Any number of rows, of columns up to panel_columns() (of pixels and planes any: see
/// max_interleaved_bytes). `scratch` has panel_scratch bytes, a line for each column, and is
/// aligned to one; it is used where y's rows do not begin with a line.
void stream_panel(const Block& block, std::byte* scratch);

/// x is taken in bands as high as so many lines of y; where y's rows do not begin with lines, so
/// that each line is combined from two tiles, of more.
inline constexpr std::int64_t band_lines = 2;
inline constexpr std::int64_t shifted_band_lines = 3;
/// 1024 rows of y are as many pages as the second-level TLB holds with ease, and x's part of a row
/// a page at most.
constexpr std::int64_t panel_columns(int element_bytes) {
  constexpr std::int64_t page = 4096;
  constexpr std::int64_t most = 1024;
  return page / element_bytes < most ? page / element_bytes : most;
}
/// A way of L1. Lines so far apart compete for one set of it, and for few sets of L2.
inline constexpr std::int64_t way_bytes = 4096;
/// Whether a panel is taken down its rows, some lines wide, in place of along them: faster, but
/// with so many rows in flight at a time that they must not all be in the same sets. Such a panel
/// has as many rows as y's part of a row is a page.
constexpr bool goes_down(std::int64_t x_row, int element_bytes) {
  return element_bytes >= 4 && x_row % way_bytes != 0;
}
/// Matrices of 2 to 4 rows or columns, pixels and planes, of elements up to so large have kernels
/// of their own, which take any number of columns or rows at a time.
inline constexpr int max_interleaved_bytes = 4;
inline constexpr std::int64_t panel_scratch = panel_columns(1) * line_bytes;

/// `stream`: whole lines of y are written with non-temporal stores; worth it from some lines a run
/// on.
void copy_runs(const Runs& runs, bool stream);

}  // namespace rung::transpose_cpu
