// SPDX-License-Identifier: Apache-2.0
// Work along rows: division of rows among threads, scratch memory, and the choice of non-temporal
// stores.
//
// Shapes   contiguous rows; rows longer than longest_row, each processed by all threads together;
//          strided rows, which are gathered into a buffer first; adjacent rows as blocks of
//          columns.
// Owners   each row that threads do not share, and each block of columns, is processed by one
//          thread. Blocks and pieces of long rows depend on the shape only, so that any number of
//          threads gives the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/rows.hpp"
#include "rung/core/work.hpp"
#include "rung/cpu/piece_work.hpp"
#include "rung/cpu/team.hpp"

namespace rung::cpu {

/// Rows up to this length keep intermediate results in L2 (256 KiB of f32 in 1 MiB). Longer rows
/// are divided into pieces of row_piece elements, which stay in L1 between two passes and whose
/// partial sums are combined afterwards.
inline constexpr std::int64_t longest_row = 65536;
inline constexpr std::int64_t row_piece = 8192;

enum class RowAccess : std::uint8_t { contiguous, long_rows, gathered };

template <int N>
RowAccess row_access(const Rows<N>& rows) {
  if (!rows.are_contiguous()) return RowAccess::gathered;
  return rows.length > longest_row ? RowAccess::long_rows : RowAccess::contiguous;
}

/// Threads of a call along rows, and their memory in the context's workspace: page-aligned scratch
/// per thread, and memory that all threads share.
struct RowTeam {
  RowAccess access;
  int threads;
  std::int64_t scratch_bytes;
  std::byte* memory;

  template <int N>
  RowTeam(Context& context, const Rows<N>& rows, int available, std::int64_t scratch,
          std::int64_t shared)
      : access(row_access(rows)), threads(available), scratch_bytes(round_up(scratch, 4096)) {
    // Threads without a row need no scratch memory.
    if (!is_shared()) threads = static_cast<int>(std::min<std::int64_t>(threads, rows.count()));
    memory = static_cast<std::byte*>(
        context.workspace(static_cast<std::size_t>(threads * scratch_bytes + shared)));
  }
  /// Returns true if all threads process one row at a time and synchronize.
  [[nodiscard]] bool is_shared() const { return access == RowAccess::long_rows; }
  [[nodiscard]] Ranks ranks() const { return is_shared() ? Ranks::concurrent : Ranks::independent; }
  [[nodiscard]] void* scratch(const Team& team) const {
    return memory + team.rank() * scratch_bytes;
  }
  [[nodiscard]] void* shared() const { return memory + threads * scratch_bytes; }
};

/// Returns how many of `threads` to use for a number of elements: at least 16384 elements, about 2
/// us, per thread.
inline int row_threads(std::int64_t elements, int threads) {
  return static_cast<int>(std::clamp<std::int64_t>(elements / 16384, 1, threads));
}

/// Returns the work of a kernel along rows, per row and per element. Converted element types and
/// gathered rows have rates keys of their own.
inline Work row_facts(std::int64_t rows, std::int64_t length, bool contiguous, DType type,
                      int threads) {
  return piece_work(rows, rows * length, threads,
                    contiguous            ? type_path(type)
                    : type == DType::f16  ? "gathered f16"
                    : type == DType::bf16 ? "gathered bf16"
                                          : "gathered");
}
template <int N>
Work row_facts(const Rows<N>& rows, DType type, int threads) {
  // Threads process a long row together; otherwise each has its own rows.
  const bool shared = row_access(rows) == RowAccess::long_rows;
  if (!shared) threads = static_cast<int>(std::min<std::int64_t>(rows.count(), threads));
  Work work = row_facts(rows.count(), rows.length, rows.are_contiguous(), type, threads);
  // A long strided row evicts its own cache lines before the next row could reuse them.
  const std::int64_t gathered = rows.are_contiguous() ? 0 : rows.length * N * 64;
  if (gathered > 1 << 20) work.bytes = work.blocks * static_cast<double>(gathered);
  return work;
}

/// Adjacent rows as columns, in blocks of at most max_columns: the sums of 1024 f32 columns (4 KiB)
/// stay in L1.
struct ColumnBlocks {
  static constexpr std::int64_t max_columns = 1024;
  std::int64_t run;  // consecutive adjacent rows
  std::int64_t columns = max_columns;
  std::int64_t count;  // total number of blocks

  /// Divides adjacent rows into blocks; their operands have `bytes` per element in total.
  template <int N>
  ColumnBlocks(const Rows<N>& rows, std::int64_t bytes) : run(rows.run()) {
    // L2 budget per block, which is read by two passes.
    constexpr std::int64_t block_bytes = 512 << 10;
    constexpr std::int64_t min_columns = 64;  // four cache lines of f32 per page
    const std::int64_t fitting = block_bytes / (bytes * rows.length) / 16 * 16;
    if (fitting >= min_columns) columns = std::min(fitting, max_columns);
    count = rows.count() / run * ceil_div(run, columns);
  }
  [[nodiscard]] std::int64_t first_row(std::int64_t block) const {
    const std::int64_t blocks = ceil_div(run, columns);
    return block / blocks * run + block % blocks * columns;
  }
  [[nodiscard]] std::int64_t width(std::int64_t block) const {
    return std::min(columns, run - block % ceil_div(run, columns) * columns);
  }
};

/// Returns the work of a kernel that vectorizes across adjacent rows, in blocks of columns; a step
/// is one vector of a block.
template <int N>
Work column_facts(const Rows<N>& rows, const ColumnBlocks& blocks, DType type, int threads) {
  const std::int64_t vectors = ceil_div(std::min(blocks.run, blocks.columns), 16);
  return piece_work(blocks.count, blocks.count * rows.length * (1 + vectors),
                    std::min<std::int64_t>(threads, blocks.count), type_path(type));
}

/// Returns the number of pieces of a long row.
inline std::int64_t row_pieces(std::int64_t length) { return ceil_div(length, row_piece); }

/// Returns whether results should be written with non-temporal stores. They avoid write-allocate
/// reads, and help only if the result would not stay in the caches together with the input (softmax
/// of f32 8x1000000 on a 2-core Zen 5 vCPU, 32 MB in and out, L3 32 MB: 2.3 ms instead of 2.5). A
/// core reaches an L3 slice of about 32 MiB on current servers, whatever total the system reports.
/// Rows of a few lines have too many partial lines (softmax on a 2-core Zen 4 vCPU, GB/s by one
/// thread and by two: 300000x100 non-temporal 6 and 5, ordinary 14 and 15; 1000000x32 non-temporal
/// 11 and 7, ordinary 12 and 12; 40000x500 non-temporal 14 and 9, ordinary 10 and 10). Must not be
/// used for in-place results, whose lines have been read already.
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
