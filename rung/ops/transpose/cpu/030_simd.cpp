// SPDX-License-Identifier: Apache-2.0
// transpose / simd
//
// Idea     a tile of 16 x 16 (4-byte elements; 64 x 64 of one byte, 4 x 4 of 16) is transposed in
//          registers: it is read in whole lines and written in whole lines, and the elements change
//          places by interleaving vectors.
// Changes  against blocked: 64 bytes per instruction; nothing waits for a line to be used up,
//          because a tile uses up all its lines at once. See detail/tile-inl.hpp.
// Cost     4-byte elements: 4 loads, 5 shuffles and a store for each 64 bytes, with AVX-512.
// Limits   one thread; a line of y is read before it is written, though every byte of it is new:
//          half as much traffic again. x and y dense along one axis each.
// Tried    rows of a tile loaded whole, and four rounds of shuffles: no faster, 2-core Zen 5 vCPU.
// Source   J. McCalpin and M. Smotherman, "Automatic benchmark generation for cache optimization of
//          matrix operations", 1995, for the blocks; the rounds are a perfect shuffle (H. Stone,
//          IEEE Trans. Comp. C-20, 1971).
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <type_traits>

#include "rung/ops/transpose/cpu/detail/blocks.hpp"
#include "rung/ops/transpose/cpu/detail/down-inl.hpp"
#include "rung/ops/transpose/cpu/detail/interleave-inl.hpp"
#include "rung/ops/transpose/cpu/detail/skinny-inl.hpp"
#include "rung/ops/transpose/cpu/detail/stream-inl.hpp"
#include "rung/ops/transpose/cpu/detail/tile-inl.hpp"

// The vector kernels: full blocks out of tiles, with ordinary stores and non-temporal ones.
HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {
namespace {

template <int bytes>
HWY_NOINLINE void block_of(const Block& b) {
  constexpr std::int64_t side = tile_side<bytes>;
  if (b.rows < side || b.columns < side) {
    if (interleaved<bytes>(b, false) || skinny<bytes>(b)) return;
    for (std::int64_t j = 0; j < b.columns; j += side) {
      for (std::int64_t i = 0; i < b.rows; i += side) {
        transpose_part<bytes>(b.x + i * b.x_row + j * bytes, b.x_row, b.y + j * b.y_row + i * bytes,
                              b.y_row, std::min(side, b.rows - i), std::min(side, b.columns - j));
      }
    }
    return;
  }
  // What is left over at the end is done by a whole tile that reaches back over the last one.
  constexpr std::int64_t group = 16 / bytes;
  const auto down = [&](std::int64_t column, auto groups) HWY_ATTR {
    for (std::int64_t i = 0; i < b.rows; i += side) {
      const std::int64_t row = std::min(i, b.rows - side);
      transpose_tile<bytes>(b.x + row * b.x_row + column * bytes, b.x_row,
                            b.y + column * b.y_row + row * bytes, b.y_row, groups);
    }
  };
  std::int64_t j = 0;
  for (; j + side <= b.columns; j += side) down(j, std::integral_constant<int, 4>());
  const std::int64_t left = b.columns - j;
  if (left > 2 * group) {
    down(b.columns - side, std::integral_constant<int, 4>());
  } else if (left > 0) {  // half a tile or less
    for (; j < b.columns; j += group) {
      down(std::min(j, b.columns - group), std::integral_constant<int, 1>());
    }
  }
}

/// The last rows and columns, less than a tile, through the caches.
template <int bytes>
HWY_INLINE void rest_of(const Block& b, std::int64_t row) {
  if (row == b.rows) return;
  constexpr std::int64_t side = tile_side<bytes>;
  const std::int64_t first = std::max<std::int64_t>(std::min(row, b.rows - side), 0);
  block_of<bytes>({b.x + first * b.x_row, b.y + first * bytes, b.x_row, b.y_row, b.rows - first,
                   b.columns, bytes});
}

#if HWY_TARGET != HWY_SCALAR
/// The last columns, less than a tile, of the rows from `row` on: a whole tile that reaches back,
/// or of half a tile or less only groups of 16 bytes (4096x65 f32: 37 us in place of 40).
template <int bytes>
HWY_INLINE void last_columns(const Block& b, std::int64_t row, std::int64_t rows) {
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr std::int64_t group = 16 / bytes;
  const std::int64_t left = b.columns % side;
  if (left == 0 || rows == 0) return;
  const std::int64_t columns = left <= 2 * group ? (left + group - 1) / group * group : side;
  const std::int64_t j = b.columns - columns;
  block_of<bytes>({b.x + row * b.x_row + j * bytes, b.y + j * b.y_row + row * bytes, b.x_row,
                   b.y_row, rows, columns, bytes});
}

/// The same by way of a buffer in L1: see tile-inl.hpp.
template <int bytes>
HWY_NOINLINE void block_staged(const Block& b) {
  constexpr std::int64_t side = tile_side<bytes>;
  alignas(line_bytes) std::byte stage[staged_across * side * staged_pitch];
  const std::int64_t whole_rows = b.rows / side * side;
  const std::int64_t whole_columns = b.columns / side * side;
  for (std::int64_t j = 0; j < whole_columns; j += staged_across * side) {
    const std::int64_t columns = std::min(staged_across * side, whole_columns - j);
    for (std::int64_t i = 0; i < whole_rows; i += staged_down * side) {
      const std::int64_t rows = std::min(staged_down * side, whole_rows - i);
      fill_stage<bytes>(b.x + i * b.x_row + j * bytes, b.x_row, stage, rows, columns);
      empty_stage(stage, b.y + j * b.y_row + i * bytes, b.y_row, columns, rows / side);
    }
  }
  last_columns<bytes>(b, 0, whole_rows);
  rest_of<bytes>(b, whole_rows);
}

/// y's rows all begin with a line: tiles go straight to memory.
template <int bytes>
HWY_NOINLINE void stream_aligned(const Block& of) {
  const Block b = of;  // in registers: through a reference, strides are read again after each store
  using T = typename LaneOf<bytes>::Type;
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr std::int64_t band = band_lines * side;
  const std::int64_t whole_rows = b.rows / side * side;
  const std::int64_t whole_columns = b.columns / side * side;
  for (std::int64_t i = 0; i < whole_rows; i += band) {
    const std::int64_t rows = std::min(band, whole_rows - i);
    for (std::int64_t j = 0; j < whole_columns; j += side) {
      fetch_ahead<bytes>(b, i, band, j, 4);
      for (std::int64_t row = i; row < i + rows; row += side) {
        std::byte* const y = b.y + j * b.y_row + row * bytes;
        transpose_tile_to<bytes>(
            b.x + row * b.x_row + j * bytes, b.x_row, 4, [&](int k, int at, auto v) {
              hn::Stream(v, hn::ScalableTag<T>(), reinterpret_cast<T*>(y + k * b.y_row + at));
            });
      }
    }
    last_columns<bytes>(b, i, rows);
  }
  rest_of<bytes>(b, whole_rows);
}

#if HWY_TARGET <= HWY_AVX3
/// y's rows begin anywhere, with a vector as long as a line: each line is combined from two
/// vectors, that of this tile and that of the tile above it, which has been kept.
template <int bytes>
HWY_NOINLINE void stream_shifted(const Block& b, std::byte* kept) {
  using T = typename LaneOf<bytes>::Type;
  const hn::ScalableTag<T> d;
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr std::int64_t band = shifted_band_lines * side;
  const std::int64_t whole = b.rows / side * side;
  for (std::int64_t i = 0; i < whole; i += band) {
    const std::int64_t rows = std::min(band, whole - i);
    for (std::int64_t j = 0; j < b.columns; j += side) {
      const std::int64_t column = std::min(j, b.columns - side);
      const int done = static_cast<int>(j - column);  // the last tile reaches back over so many
      fetch_ahead<bytes>(b, i, band, column);
      for (std::int64_t row = i; row < i + rows; row += side) {
        std::byte* const y = b.y + column * b.y_row + row * bytes;
        std::byte* const above = kept + column * line_bytes;
        transpose_tile_to<bytes>(b.x + row * b.x_row + column * bytes, b.x_row, 4,
                                 [&](int k, int, auto v) {
                                   if (HWY_UNLIKELY(k < done)) return;
                                   std::byte* const to = y + k * b.y_row;
                                   T* const keep = reinterpret_cast<T*>(above + k * line_bytes);
                                   const std::int64_t skew = skew_of(to);
                                   if (HWY_LIKELY(row > 0)) {
                                     const auto line = shift_in(d, hn::Load(d, keep), v, skew);
                                     hn::Stream(line, d, reinterpret_cast<T*>(to - skew));
                                     hn::Store(v, d, keep);
                                   } else {  // what precedes in the first line is not ours
                                     hn::Store(v, d, keep);
                                     copy_short(above + k * line_bytes, to, line_bytes - skew);
                                   }
                                 });
      }
    }
  }
  // The last line of each row is not full: the end of the last vector belongs into it.
  for (std::int64_t j = 0; j < b.columns; ++j) {
    std::byte* const end = b.y + j * b.y_row + whole * bytes;
    const std::int64_t skew = skew_of(end);
    copy_short(kept + (j + 1) * line_bytes - skew, end - skew, skew);
  }
  rest_of<bytes>(b, whole);
}
#endif
#endif

template <int bytes>
HWY_INLINE void panel_of(const Block& b, [[maybe_unused]] std::byte* scratch) {
#if HWY_TARGET != HWY_SCALAR
  constexpr std::int64_t side = tile_side<bytes>;
  const bool aligned = skew_of(b.y) == 0 && (b.y_row & (line_bytes - 1)) == 0;
  if (interleaved<bytes>(b, true)) return;
  if (b.rows >= side && b.columns >= side) {
#if HWY_TARGET <= HWY_AVX3
    if constexpr (bytes >= 4) {  // the tiles of smaller elements would exceed L1
      if (goes_down(b.x_row, bytes)) {
        aligned ? stream_down<bytes, false>(b) : stream_down<bytes, true>(b);
        return rest_of<bytes>(b, b.rows / side * side);
      }
    }
#endif
    if (aligned) return stream_aligned<bytes>(b);
#if HWY_TARGET <= HWY_AVX3
    // Bytes across a whole vector are moved by instructions that only later processors have.
    if constexpr (bytes > 1) return stream_shifted<bytes>(b, scratch);
#endif
    return stream_by_buffer<bytes>(b, scratch);
  }
#endif
  block_of<bytes>(b);
}

template <class F>
HWY_INLINE void with_bytes(int element_bytes, F&& f) {
  switch (element_bytes) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 4:
      return f.template operator()<4>();
    case 8:
      return f.template operator()<8>();
    default:
      return f.template operator()<16>();
  }
}

/// Full lines of y with non-temporal stores, what is left before and behind them through.
HWY_INLINE void stream_run(const std::byte* from, std::byte* to, std::int64_t count) {
#if HWY_TARGET == HWY_SCALAR
  std::memcpy(to, from, static_cast<std::size_t>(count));
#else
  const auto skew = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % line_bytes);
  std::int64_t at = skew == 0 ? 0 : std::min(line_bytes - skew, count);
  std::memcpy(to, from, static_cast<std::size_t>(at));
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::int64_t step = static_cast<std::int64_t>(hn::MaxLanes(d));
  const std::int64_t end = at + (count - at) / line_bytes * line_bytes;
  for (; at < end; at += step) {
    hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from + at)), d,
               reinterpret_cast<std::uint8_t*>(to + at));
  }
  std::memcpy(to + at, from + at, static_cast<std::size_t>(count - at));
#endif
}

/// Short runs of one known length need no call.
template <int bytes>
HWY_INLINE void copy_fixed(const Runs& r) {
  for (std::int64_t j = 0; j < r.columns; ++j) {
    for (std::int64_t i = 0; i < r.rows; ++i) {
      const std::byte* from = r.x + i * r.x_row + j * r.x_column;
      std::byte* to = r.y + j * r.y_row + i * r.y_column;
      if constexpr (bytes == 0) {
        copy_short(from, to, r.run);
      } else {
        std::memcpy(to, from, bytes);
      }
    }
  }
}

}  // namespace

void runs_kernel(const Runs& r, bool stream) {
  if (r.run == 32) return copy_fixed<32>(r);
  if (r.run < line_bytes) return copy_fixed<0>(r);
  if (r.run == line_bytes && !stream) return copy_fixed<64>(r);
  for (std::int64_t j = 0; j < r.columns; ++j) {
    for (std::int64_t i = 0; i < r.rows; ++i) {
      const std::byte* from = r.x + i * r.x_row + j * r.x_column;
      std::byte* to = r.y + j * r.y_row + i * r.y_column;
      if (stream) {
        stream_run(from, to, r.run);
      } else {
        std::memcpy(to, from, static_cast<std::size_t>(r.run));
      }
    }
  }
  if (stream) hwy::FlushStream();
}

void blocks_kernel(const Block& first, std::int64_t count, std::int64_t x_matrix,
                   std::int64_t y_matrix) {
  with_bytes(first.element_bytes, [&]<int bytes>() {
    Block b = first;
    for (std::int64_t i = 0; i < count; ++i, b.x += x_matrix, b.y += y_matrix) block_of<bytes>(b);
  });
}

void block_kernel(const Block& b, [[maybe_unused]] bool staged) {
  with_bytes(b.element_bytes, [&]<int bytes>() {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (bytes >= 4) {  // of smaller elements the buffer would exceed L1
      if (staged && b.rows >= tile_side<bytes> && b.columns >= tile_side<bytes>) {
        return block_staged<bytes>(b);
      }
    }
#endif
    block_of<bytes>(b);
  });
}

void panel_kernel(const Block& b, std::byte* scratch) {
  with_bytes(b.element_bytes, [&]<int bytes>() { panel_of<bytes>(b, scratch); });
  hwy::FlushStream();
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::transpose_cpu {
HWY_EXPORT(block_kernel);
HWY_EXPORT(blocks_kernel);
HWY_EXPORT(panel_kernel);
HWY_EXPORT(runs_kernel);

void transpose_block(const Block& block, bool staged) {
  HWY_DYNAMIC_DISPATCH(block_kernel)(block, staged);
}
void transpose_blocks(const Block& first, std::int64_t count, std::int64_t x_matrix,
                      std::int64_t y_matrix) {
  HWY_DYNAMIC_DISPATCH(blocks_kernel)(first, count, x_matrix, y_matrix);
}
void stream_panel(const Block& block, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(panel_kernel)(block, scratch);
}
void copy_runs(const Runs& runs, bool stream) { HWY_DYNAMIC_DISPATCH(runs_kernel)(runs, stream); }
}  // namespace rung::transpose_cpu

namespace rung {
namespace {
using namespace transpose_cpu;

void run(const Transpose::Args& args, Context&) {
  if (args.moves.empty()) return;
  const Grid grid = cached_grid(args.moves);
  for_each_block(grid, {0, grid.size()},
                 [&](const Place& place) { transpose_block(block_of(args, place)); });
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
