// SPDX-License-Identifier: Apache-2.0
// transpose / streaming
//
// Idea     Non-temporal stores write a full line of y without loading it first. x is read in bands
//          two lines of y high, over panels of up to 1024 columns, so that the pages of y's rows
//          stay in the TLB from one band to the next.
// Changes  Against simd: a third less traffic. More rows are read at once than hardware prefetchers
//          track, so lines of x are prefetched by software. If rows of y do not start on a line,
//          each line is combined from two tiles.
// Cost     Every byte of x and y once, like a copy.
// Limits   Memory-bound; wasteful if y fits the caches and is read next. One thread.
// Source   J. McCalpin, STREAM, 1995.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include <algorithm>

#include "rung/cpu/transpose_tile-inl.hpp"
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {
namespace {
using namespace cpu::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
/// Prefetches lines of x ahead of the tile at `column`, or lines of the next band at the end of
/// this one.
template <int bytes>
HWY_INLINE void prefetch_ahead(const TransposeBlock& b, std::int64_t row, std::int64_t rows,
                               std::int64_t column, std::int64_t lines_ahead = 8) {
  std::int64_t ahead = column + lines_ahead * tile_side<bytes>;
  if (ahead >= b.columns) {
    ahead -= b.columns;
    row += rows;
  }
  const std::byte* from = b.x + row * b.x_row + ahead * bytes;
  for (std::int64_t i = 0; i < rows; ++i, from += b.x_row) __builtin_prefetch(from, 0, 2);
}

/// Transposes with rows of y that start on a line: tiles are stored directly to memory.
template <int bytes>
HWY_NOINLINE void stream_aligned(const TransposeBlock& of) {
  // a copy in registers: through the reference, strides are reloaded after each store
  const TransposeBlock b = of;
  using Lane = LaneOf<bytes>;
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr std::int64_t band = 2 * side;
  const std::int64_t whole_rows = b.rows / side * side;
  const std::int64_t whole_columns = b.columns / side * side;
  for (std::int64_t i = 0; i < whole_rows; i += band) {
    const std::int64_t rows = std::min(band, whole_rows - i);
    for (std::int64_t j = 0; j < whole_columns; j += side) {
      prefetch_ahead<bytes>(b, i, band, j, 4);
      for (std::int64_t row = i; row < i + rows; row += side) {
        std::byte* const y = b.y + j * b.y_row + row * bytes;
        transpose_tile_to<bytes>(
            b.x + row * b.x_row + j * bytes, b.x_row, 4, [&](int k, int at, auto v) HWY_ATTR {
              hn::Stream(v, hn::ScalableTag<Lane>(), reinterpret_cast<Lane*>(y + k * b.y_row + at));
            });
      }
    }
    transpose_last_columns(b, i, rows);
  }
  transpose_last_rows(b);
}

#if HWY_TARGET <= HWY_AVX3
/// Transposes with rows of y at any alignment, if a vector is a line. Each line is combined from
/// two vectors: this tile's, and that of the tile above, kept in `kept`.
template <int bytes>
HWY_NOINLINE void stream_shifted(const TransposeBlock& b, std::byte* kept) {
  using Lane = LaneOf<bytes>;
  const hn::ScalableTag<Lane> d;
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr std::int64_t band = 3 * side;
  const std::int64_t whole = b.rows / side * side;
  for (std::int64_t i = 0; i < whole; i += band) {
    const std::int64_t rows = std::min(band, whole - i);
    for (std::int64_t j = 0; j < b.columns; j += side) {
      const std::int64_t column = std::min(j, b.columns - side);
      // columns by which the last tile overlaps the previous
      const int done = static_cast<int>(j - column);
      prefetch_ahead<bytes>(b, i, band, column);
      for (std::int64_t row = i; row < i + rows; row += side) {
        std::byte* const y = b.y + column * b.y_row + row * bytes;
        std::byte* const above = kept + column * line_bytes;
        transpose_tile_to<bytes>(
            b.x + row * b.x_row + column * bytes, b.x_row, 4, [&](int k, int, auto v) HWY_ATTR {
              if (HWY_UNLIKELY(k < done)) return;
              std::byte* const to = y + k * b.y_row;
              Lane* const keep = reinterpret_cast<Lane*>(above + k * line_bytes);
              const std::int64_t skew = cpu::line_offset(to);
              if (HWY_LIKELY(row > 0)) {
                const auto line = shift_in(d, hn::Load(d, keep), v, skew);
                hn::Stream(line, d, reinterpret_cast<Lane*>(to - skew));
                hn::Store(v, d, keep);
              } else {  // the bytes before it in the first line belong to other rows
                hn::Store(v, d, keep);
                cpu::copy_short(above + k * line_bytes, to, line_bytes - skew);
              }
            });
      }
    }
  }
  // The last line of each row is partial: stores the end of the last vector to it.
  for (std::int64_t j = 0; j < b.columns; ++j) {
    std::byte* const end = b.y + j * b.y_row + whole * bytes;
    const std::int64_t skew = cpu::line_offset(end);
    cpu::copy_short(kept + (j + 1) * line_bytes - skew, end - skew, skew);
  }
  transpose_last_rows(b);
}
#endif

HWY_INLINE void store_line(const std::byte* from, std::byte* to) {
  const hn::ScalableTag<std::uint8_t> d;
  for (std::int64_t at = 0; at < line_bytes; at += static_cast<std::int64_t>(hn::MaxLanes(d))) {
    hn::Stream(hn::Load(d, reinterpret_cast<const std::uint8_t*>(from + at)), d,
               reinterpret_cast<std::uint8_t*>(to + at));
  }
}

/// Transposes with rows of y at any alignment, if a vector is not a line or elements are bytes,
/// which only later processors permute across a whole vector. Tiles go to a small buffer whose rows
/// have the alignment of y's rows, behind the partial line that the last band left. Complete lines
/// are stored, and the rest is kept for the next band, a line per row: no line of y is loaded, or
/// stored in parts.
template <int bytes>
HWY_NOINLINE void stream_by_buffer(const TransposeBlock& b, std::byte* left_over) {
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr std::int64_t band = 2 * side;
  const auto skew_of = [&](std::int64_t j) { return cpu::line_offset(b.y + j * b.y_row); };
  // A row of the buffer: a line of slack, the kept partial line and two lines, together up to four
  // lines.
  const std::int64_t pitch = 4 * line_bytes + (b.y_row & (line_bytes - 1));
  alignas(line_bytes) std::byte buffer[(side + 1) * 5 * line_bytes];
  for (std::int64_t i = 0; i < b.rows; i += band) {
    const std::int64_t rows = std::min(band, b.rows - i);
    const bool last = i + band >= b.rows;
    for (std::int64_t j = 0; j < b.columns; j += side) {
      // The last tile overlaps finished columns, whose rows of y are not stored again.
      const std::int64_t column = std::min(j, b.columns - side);
      const std::int64_t done = j - column;
      std::byte* const tile = buffer + line_bytes + skew_of(column);
      prefetch_ahead<bytes>(b, i, band, column);
      for (std::int64_t k = done; k < side; ++k) {
        std::memcpy(tile + k * pitch - skew_of(column + k), left_over + (column + k) * line_bytes,
                    std::size_t{line_bytes});
      }
      for (std::int64_t part = 0; part < rows; part += side) {
        const std::int64_t row = std::min(part, rows - side);  // may overlap the last band
        transpose_tile<bytes>(b.x + (i + row) * b.x_row + column * bytes, b.x_row,
                              tile + row * bytes, pitch);
      }
      for (std::int64_t k = done; k < side; ++k) {
        const std::int64_t skew = skew_of(column + k);
        const std::byte* const from = tile + k * pitch - skew;
        std::byte* const to = b.y + (column + k) * b.y_row + i * bytes - skew;
        const std::int64_t end = skew + rows * bytes;
        std::int64_t at = 0;
        if (i == 0 && skew != 0) {  // the start of the first line belongs to other rows
          at = std::min(line_bytes, end);
          cpu::copy_short(from + skew, to + skew, at - skew);
        }
        for (; at + line_bytes <= end; at += line_bytes) store_line(from + at, to + at);
        if (last) {
          cpu::copy_short(from + at, to + at, end - at);
        } else {
          std::memcpy(left_over + (column + k) * line_bytes, from + at, std::size_t{line_bytes});
        }
      }
    }
  }
}
#endif

}  // namespace

void stream_panel(const TransposeBlock& b, [[maybe_unused]] std::byte* scratch) {
#if HWY_TARGET == HWY_SCALAR
  transpose_tiles(b);
#else
  with_elements(b.element_bytes, [&]<class T>() HWY_ATTR {
    constexpr int bytes = sizeof(T);
    if (cpu::line_offset(b.y) == 0 && b.y_row % line_bytes == 0) return stream_aligned<bytes>(b);
#if HWY_TARGET <= HWY_AVX3
    if constexpr (bytes > 1) return stream_shifted<bytes>(b, scratch);
#endif
    return stream_by_buffer<bytes>(b, scratch);
  });
  hwy::FlushStream();
#endif
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace transpose_cpu {
HWY_EXPORT(stream_panel);
void stream_along(const TransposeBlock& block, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(stream_panel)(block, scratch);
}
}  // namespace transpose_cpu

namespace {
using namespace transpose_cpu;

void run(const Transpose::Args& args, Context& context) {
  auto* const scratch = static_cast<std::byte*>(context.workspace(panel_scratch));
  const Moves& m = args.moves;
  const std::int64_t side = tile_side_of(m);
  const Grid grid(m, any_rows, panel_columns(m.element_bytes), side);
  grid.for_each({0, grid.size()},
                [&](const BlockRange& block) { stream_along(block_of(args, block), scratch); });
}

const Rung<Transpose> self{{.name = "streaming",
                            .step = 40,
                            .after = "simd",
                            .teaching = true,
                            .supports = require_tiles,
                            .run = run}};

}  // namespace
}  // namespace rung
#endif
