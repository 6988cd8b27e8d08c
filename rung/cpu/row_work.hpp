// SPDX-License-Identifier: Apache-2.0
// Divides a call along rows among threads, and says whether its results bypass the caches.
//
// Shapes   rows that are contiguous; adjacent, in blocks of columns; or neither, which are gathered
//          into a buffer first. Rows longer than longest_row are divided among all threads, one row
//          after another.
// Owners   a unit of work (a row, or a block of columns) belongs to one thread. Units and pieces
//          follow from the shape alone, so that any number of threads gives the same bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/core/rows.hpp"

namespace rung::cpu {

/// Rows up to this length keep intermediate results in L2 (256 KiB of f32 in its 1 MiB); longer
/// ones are cut into pieces, whose sums are combined afterwards. A piece stays in L1 between two
/// passes.
inline constexpr std::int64_t longest_row = 65536;
inline constexpr std::int64_t row_piece = 8192;

/// Columns per block: 4 KiB of f32, with their sums in L1.
inline constexpr std::int64_t max_columns = 1024;

struct RowWork {
  enum class Kind : std::uint8_t { rows, columns, gathered, long_rows } kind;
  std::int64_t units;
  std::int64_t columns = 0;  // per block
};

/// Divides rows whose operands take `bytes` per element.
template <int N>
RowWork row_work(const Rows<N>& rows, std::int64_t bytes) {
  // L2 budget per block of columns across its two passes.
  constexpr std::int64_t block_bytes = 512 << 10;
  constexpr std::int64_t min_columns = 64;  // four cache lines of f32 per page that is opened
  if (rows.are_contiguous()) {
    const bool is_long = rows.length > longest_row;
    return {is_long ? RowWork::Kind::long_rows : RowWork::Kind::rows, rows.count()};
  }
  if (rows.are_adjacent() && rows.run() > 1) {
    const std::int64_t run = rows.run();
    const std::int64_t fitting = block_bytes / (bytes * rows.length) / 16 * 16;
    const std::int64_t columns =
        fitting >= min_columns ? std::min(fitting, max_columns) : max_columns;
    return {RowWork::Kind::columns, rows.count() / run * ((run + columns - 1) / columns), columns};
  }
  return {RowWork::Kind::gathered, rows.count()};
}

/// Returns the number of pieces of a long row.
inline std::int64_t row_pieces(std::int64_t length) { return (length + row_piece - 1) / row_piece; }

/// Returns whether results should go to memory with non-temporal stores. These save reading what is
/// overwritten, and help only where the result would not stay in the caches beside what is read
/// (softmax of f32 8x1000000 on a 2-core Zen 5 vCPU, 32 MB in and out, L3 32 MB: 2.3 ms instead of
/// 2.5). What a core reaches of L3 is a slice of some 32 MiB on servers of today, whatever the
/// system says of their sum. Rows of a few lines are cut at their ends too often (softmax on a
/// 2-core Zen 4 vCPU, one thread and two, 300000x100: 6 and 5 GB/s non-temporal, 14 and 15
/// ordinary; 1000000x32 11 and 7, 12 and 12; 40000x500 14 and 9, 10 and 10). Not for results in
/// place, which have been read already.
inline bool rows_bypass_caches(std::int64_t length, std::int64_t count, std::int64_t written_bytes,
                               std::int64_t read_bytes) {
  constexpr double l3 = 32 << 20;
  constexpr std::int64_t short_row = 512;  // bytes
  if (length * written_bytes < short_row) return false;
  return static_cast<double>(length) * static_cast<double>(count) *
             static_cast<double>(written_bytes + read_bytes) >
         l3;
}

}  // namespace rung::cpu
