// SPDX-License-Identifier: Apache-2.0
// transpose / runs
//
// Idea     Elements that remain neighbors in y are copied together: short runs inline, long runs by
//          vectors, and beyond the caches whole lines by non-temporal stores.
// Changes  Against blocked: a copy per run instead of per element.
// Cost     Every byte of x and y once; a run of less than a line costs about as much as a line.
// Limits   Runs only; one thread.
#include <algorithm>
#include <cstring>

#include "rung/cpu/lines.hpp"
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

namespace rung {
namespace transpose_cpu {
namespace {

/// Bytes of the pieces of long runs, which threads divide.
constexpr std::int64_t piece_bytes = 128 << 10;

std::int64_t pieces_of(const Moves& m) { return ceil_div(m.run, piece_bytes / m.element_bytes); }

}  // namespace

std::int64_t run_units(const Moves& m) { return element_grid(m).size() * pieces_of(m); }

void copy_runs(const Transpose::Args& args, cpu::Range units) {
  const Moves& m = args.moves;
  const std::int64_t bytes = m.element_bytes;
  const bool streams = exceeds_caches(m) && m.run * bytes >= 2 * line_bytes;
  const std::int64_t pieces = pieces_of(m);
  /// Copies `length` bytes of each run of a block, starting at byte `first`.
  const auto copy = [&](const BlockRange& block, std::int64_t first, std::int64_t length) {
    std::int64_t at[2];
    m.batch.offsets(block.matrix, at);
    const auto* x = static_cast<const std::byte*>(args.x.data) + at[1] * bytes + first;
    auto* y = static_cast<std::byte*>(args.y.data) + at[0] * bytes + first;
    x += (block.row * m.x_row + block.column * m.x_column) * bytes;
    y += (block.column * m.y_row + block.row * m.y_column) * bytes;
    // Captured by value: through a reference, strides are reloaded after each store.
    const auto each = [=, rows = block.rows, columns = block.columns, x_row = m.x_row * bytes,
                       x_column = m.x_column * bytes, y_row = m.y_row * bytes,
                       y_column = m.y_column * bytes](const auto& copy_run) {
      for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t i = 0; i < rows; ++i) {
          copy_run(x + i * x_row + j * x_column, y + j * y_row + i * y_column);
        }
      }
    };
    if (length == 32) {
      each([](const std::byte* from, std::byte* to) { std::memcpy(to, from, 32); });
    } else if (length == line_bytes) {
      each([](const std::byte* from, std::byte* to) { std::memcpy(to, from, line_bytes); });
    } else if (length < line_bytes) {
      each([=](const std::byte* from, std::byte* to) { cpu::copy_short(from, to, length); });
    } else if (streams) {
      each([&](const std::byte* from, std::byte* to) { cpu::stream_line(from, to, length); });
    } else {
      each([&](const std::byte* from, std::byte* to) {
        std::memcpy(to, from, static_cast<std::size_t>(length));
      });
    }
  };
  const std::int64_t piece = piece_bytes / bytes;
  const Grid grid = element_grid(m);
  if (pieces == 1) {
    grid.for_each(units, [&](const BlockRange& block) { copy(block, 0, m.run * bytes); });
  } else {
    for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
      const std::int64_t first = unit % pieces * piece;
      grid.for_each({unit / pieces, unit / pieces + 1}, [&](const BlockRange& block) {
        copy(block, first * bytes, std::min(piece, m.run - first) * bytes);
      });
    }
  }
  if (streams) cpu::end_streams();
}

}  // namespace transpose_cpu

namespace {

Support supports(const Transpose::Args& args, const Context&) {
  return args.moves.empty() || args.moves.run > 1 ? supported : unsupported("runs alone");
}

void run(const Transpose::Args& args, Context&) {
  transpose_cpu::copy_runs(args, {0, transpose_cpu::run_units(args.moves)});
}

const Rung<Transpose> self{
    {.name = "runs", .after = "blocked", .teaching = true, .supports = supports, .run = run}};

}  // namespace
}  // namespace rung
