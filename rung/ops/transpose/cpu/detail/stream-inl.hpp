// SPDX-License-Identifier: Apache-2.0
//
// What non-temporal stores need: whole lines of y, wherever its rows begin.
#if defined(RUNG_OPS_TRANSPOSE_CPU_STREAM_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_TRANSPOSE_CPU_STREAM_INL_HPP_
#undef RUNG_OPS_TRANSPOSE_CPU_STREAM_INL_HPP_
#else
#define RUNG_OPS_TRANSPOSE_CPU_STREAM_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rung/ops/transpose/cpu/detail/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {

/// How far into a line an address lies.
HWY_INLINE std::int64_t skew_of(const std::byte* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) % line_bytes);
}

/// Lines of x fetched ahead of the tile at `column`: the hardware's prefetchers do not follow as
/// many streams as there are rows. Where the band of rows ends, of the band below it.
template <int bytes>
HWY_INLINE void fetch_ahead(const Block& b, std::int64_t row, std::int64_t rows,
                            std::int64_t column, std::int64_t lines_ahead = 8) {
  constexpr std::int64_t side = tile_side<bytes>;
  std::int64_t ahead = column + lines_ahead * side;
  if (ahead >= b.columns) {
    ahead -= b.columns;
    row += rows;
  }
  const std::byte* from = b.x + row * b.x_row + ahead * bytes;
  for (std::int64_t i = 0; i < rows; ++i, from += b.x_row) __builtin_prefetch(from, 0, 2);
}

#if HWY_TARGET != HWY_SCALAR
#if HWY_TARGET <= HWY_AVX3
/// The last `skew` bytes of one vector, then the first of another: a line of y.
template <class D, class V>
HWY_INLINE V shift_in(D d, V first, V second, std::int64_t skew) {
  using T = hn::TFromD<D>;
  constexpr int lanes = line_bytes / sizeof(T);
  const T from = static_cast<T>(lanes - skew / static_cast<std::int64_t>(sizeof(T)));
  const auto at = hn::Add(hn::Iota(d, T{0}), hn::Set(d, from));
  if constexpr (sizeof(T) == 2) return V{_mm512_permutex2var_epi16(first.raw, at.raw, second.raw)};
  if constexpr (sizeof(T) == 4) return V{_mm512_permutex2var_epi32(first.raw, at.raw, second.raw)};
  if constexpr (sizeof(T) == 8) return V{_mm512_permutex2var_epi64(first.raw, at.raw, second.raw)};
}
#endif

HWY_INLINE void copy_line(const std::byte* from, std::byte* to) {
  std::memcpy(to, from, static_cast<std::size_t>(line_bytes));
}

/// The same with non-temporal stores.
HWY_INLINE void stream_line(const std::byte* from, std::byte* to) {
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::int64_t step = static_cast<std::int64_t>(hn::MaxLanes(d));
  for (std::int64_t at = 0; at < line_bytes; at += step) {
    hn::Stream(hn::Load(d, reinterpret_cast<const std::uint8_t*>(from + at)), d,
               reinterpret_cast<std::uint8_t*>(to + at));
  }
}

/// Row j of y begins `skew` bytes into a line, each at its own. Tiles go to a small buffer whose
/// rows are in lines as those of y do, behind what the last band left of an unfinished line;
/// finished lines leave for memory, and what is left now is kept for the next band, a line a row.
/// So no line of y is ever read, or written in two halves.
template <int bytes>
HWY_NOINLINE void stream_by_buffer(const Block& b, std::byte* left_over) {
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr std::int64_t band = 2 * side;
  const auto skew_of_row = [&](std::int64_t j) { return skew_of(b.y + j * b.y_row); };
  // A row of the buffer: a line of slack, the left-over and two lines, which take up to a fourth.
  const std::int64_t pitch = 4 * line_bytes + (b.y_row & (line_bytes - 1));
  alignas(line_bytes) std::byte buffer[(side + 1) * 5 * line_bytes];
  for (std::int64_t i = 0; i < b.rows; i += band) {
    const std::int64_t rows = std::min(band, b.rows - i);
    const bool last = i + band >= b.rows;
    for (std::int64_t j = 0; j < b.columns; j += side) {
      // The last tile reaches back over columns that are done; their rows of y are left alone.
      const std::int64_t column = std::min(j, b.columns - side);
      const std::int64_t done = j - column;
      std::byte* const tile = buffer + line_bytes + skew_of_row(column);
      fetch_ahead<bytes>(b, i, band, column);
      for (std::int64_t k = done; k < side; ++k) {
        copy_line(left_over + (column + k) * line_bytes,
                  tile + k * pitch - skew_of_row(column + k));
      }
      for (std::int64_t part = 0; part < rows; part += side) {
        const std::int64_t row = std::min(part, rows - side);  // may reach back over the last band
        transpose_tile<bytes>(b.x + (i + row) * b.x_row + column * bytes, b.x_row,
                              tile + row * bytes, pitch);
      }
      for (std::int64_t k = done; k < side; ++k) {
        const std::int64_t skew = skew_of_row(column + k);
        const std::byte* const from = tile + k * pitch - skew;
        std::byte* const to = b.y + (column + k) * b.y_row + i * bytes - skew;
        const std::int64_t end = skew + rows * bytes;
        std::int64_t at = 0;
        if (i == 0 && skew != 0) {  // the beginning of the first line is not ours
          at = std::min(line_bytes, end);
          copy_short(from + skew, to + skew, at - skew);
        }
        for (; at + line_bytes <= end; at += line_bytes) stream_line(from + at, to + at);
        if (last) {
          copy_short(from + at, to + at, end - at);
        } else {
          copy_line(from + at, left_over + (column + k) * line_bytes);
        }
      }
    }
  }
}
#endif

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
