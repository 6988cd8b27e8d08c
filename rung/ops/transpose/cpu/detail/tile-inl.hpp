// SPDX-License-Identifier: Apache-2.0
//
// Transposing inside registers. A tile is one cache line of x wide and one cache line of y high: 16
// x 16 elements of 4 bytes, 64 x 64 of one byte.
//
// Blocks of 16 bytes are the unit. Of P elements to a block, row P b + j of x is loaded into block
// b of vector j, which moves blocks to their places for the price of the load. What is left is to
// transpose P x P elements inside all blocks at once, by log2(P) rounds of interleaving.
#if defined(RUNG_OPS_TRANSPOSE_CPU_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_TRANSPOSE_CPU_TILE_INL_HPP_
#undef RUNG_OPS_TRANSPOSE_CPU_TILE_INL_HPP_
#else
#define RUNG_OPS_TRANSPOSE_CPU_TILE_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "rung/ops/transpose/cpu/detail/engine.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What moves elements of `bytes`: 16-byte ones are two words that stay together.
template <int bytes>
struct LaneOf {
  using Type = std::uint64_t;
};
template <>
struct LaneOf<4> {
  using Type = std::uint32_t;
};
template <>
struct LaneOf<2> {
  using Type = std::uint16_t;
};
template <>
struct LaneOf<1> {
  using Type = std::uint8_t;
};

/// Rows and columns of a tile.
template <int bytes>
inline constexpr std::int64_t tile_side = line_bytes / bytes;

#if HWY_TARGET != HWY_SCALAR
// Rows r, r + s, r + 2s, ... of 16 bytes each, one to each 128-bit block of a vector.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const std::byte* from, std::int64_t step) {
  constexpr std::size_t vector_bytes = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>);
  if constexpr (vector_bytes == 16) {
    return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
  } else {
    const hn::Half<D> half;
    constexpr std::int64_t blocks = vector_bytes / 32;
    return hn::Combine(d, load_blocks(half, from + blocks * step, step),
                       load_blocks(half, from, step));
  }
}

// Element (i, j) of each block's square becomes (j, i): interleaving vector i with the one half of
// them later rotates the bits of the index (i, j) by one place, and after as many rounds as i has
// bits the two have changed places.
template <int per_block, class D, class V>
HWY_INLINE void transpose_in_blocks(D d, V (&v)[per_block]) {
#pragma GCC unroll 4
  for (int round = 1; round < per_block; round *= 2) {
    V w[per_block];
#pragma GCC unroll 8
    for (int i = 0; i < per_block / 2; ++i) {
      w[2 * i] = hn::InterleaveLower(d, v[i], v[i + per_block / 2]);
      w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + per_block / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < per_block; ++i) v[i] = w[i];
  }
}
#endif

#if HWY_TARGET != HWY_SCALAR
/// One tile, in the first `groups` of four times 16 bytes of x's columns. What to do with row j of
/// y is up to store(j, byte within the line, vector).
template <int bytes, class Store>
HWY_INLINE void transpose_tile_to(const std::byte* x, std::int64_t x_row, int groups,
                                  Store&& store) {
  using T = typename LaneOf<bytes>::Type;
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int vector_bytes = static_cast<int>(hn::MaxLanes(d) * sizeof(T));
  constexpr int per_block = 16 / bytes;                  // elements to a block
  constexpr int rows = per_block * (vector_bytes / 16);  // of x, to a vector
  // With 32 registers a tile of 4 bytes or more is held whole, so that each row is read at one go:
  // rows a power of two apart fall into one set of the L1 cache, where a line half read is lost.
  if constexpr (vector_bytes == line_bytes && per_block <= 4) {
    if (HWY_LIKELY(groups == 4)) {
      V v[4][per_block];
#pragma GCC unroll 4
      for (int j = 0; j < per_block; ++j) {
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s)
          v[s][j] = load_blocks(d, x + j * x_row + s * 16, per_block * x_row);
      }
#pragma GCC unroll 4
      for (int s = 0; s < 4; ++s) {
        transpose_in_blocks<per_block>(d, v[s]);
#pragma GCC unroll 4
        for (int j = 0; j < per_block; ++j) store(s * per_block + j, 0, v[s][j]);
      }
      return;
    }
  }
  for (int s = 0; s < groups; ++s, x += 16) {
    // Parts of y's line that are short of it: neighbors in time, so that they leave as one.
    for (int part = 0; part < line_bytes / vector_bytes; ++part) {
      V v[per_block];
#pragma GCC unroll 16
      for (int j = 0; j < per_block; ++j) {
        v[j] = load_blocks(d, x + (part * rows + j) * x_row, per_block * x_row);
      }
      transpose_in_blocks<per_block>(d, v);
#pragma GCC unroll 16
      for (int j = 0; j < per_block; ++j) store(s * per_block + j, part * vector_bytes, v[j]);
    }
  }
}
#endif

/// One tile, through the caches.
template <int bytes>
HWY_INLINE void transpose_tile(const std::byte* x, std::int64_t x_row, std::byte* y,
                               std::int64_t y_row, int groups = 4) {
#if HWY_TARGET == HWY_SCALAR
  const std::int64_t columns = groups * 16 / bytes;
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < tile_side<bytes>; ++i) {
      std::memcpy(y + j * y_row + i * bytes, x + i * x_row + j * bytes, bytes);
    }
  }
#else
  using T = typename LaneOf<bytes>::Type;
  transpose_tile_to<bytes>(x, x_row, groups, [&](int j, int at, auto v) {
    hn::StoreU(v, hn::ScalableTag<T>(), reinterpret_cast<T*>(y + j * y_row + at));
  });
#endif
}

// g++ 12 sees the second piece of a copy begin before the array, having lost what `count` is.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
/// Up to a line, of any length, without a call.
HWY_INLINE void copy_short(const std::byte* from, std::byte* to, std::int64_t count) {
  // Two overlapping pieces cover what is between a power of two and the next.
  const auto both = [&]<int size>() {
    std::byte first[size];
    std::byte last[size];
    std::memcpy(first, from, size);
    std::memcpy(last, from + count - size, size);
    std::memcpy(to, first, size);
    std::memcpy(to + count - size, last, size);
  };
  if (count >= 32) return both.template operator()<32>();
  if (count >= 16) return both.template operator()<16>();
  if (count >= 8) return both.template operator()<8>();
  if (count >= 4) return both.template operator()<4>();
  if (count >= 2) return both.template operator()<2>();
  if (count == 1) *to = *from;
}
#pragma GCC diagnostic pop

/// A tile of which only some rows and columns exist, by way of a whole one.
template <int bytes>
HWY_INLINE void transpose_part(const std::byte* x, std::int64_t x_row, std::byte* y,
                               std::int64_t y_row, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t side = tile_side<bytes>;
  alignas(line_bytes) std::byte in[side * line_bytes];
  alignas(line_bytes) std::byte out[side * line_bytes];
  const int groups = static_cast<int>((columns * bytes + 15) / 16);
  for (std::int64_t i = 0; i < rows; ++i) {
    copy_short(x + i * x_row, in + i * line_bytes, columns * bytes);
  }
  transpose_tile<bytes>(in, line_bytes, out, line_bytes, groups);
  for (std::int64_t j = 0; j < columns; ++j) {
    copy_short(out + j * line_bytes, y + j * y_row, rows * bytes);
  }
}

#if HWY_TARGET != HWY_SCALAR
/// A buffer in L1 between x and y, so many lines of x wide and of y high: lines of x that are
/// neighbors are read together, and so are those of y written.
inline constexpr std::int64_t staged_across = 4;
inline constexpr std::int64_t staged_down = 8;
/// An odd number of lines: rows of the buffer begin in different sets of the cache.
inline constexpr std::int64_t staged_pitch = (staged_down + 1) * line_bytes;

template <int bytes>
HWY_NOINLINE void fill_stage(const std::byte* x, std::int64_t x_row, std::byte* stage,
                             std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t side = tile_side<bytes>;
  for (std::int64_t row = 0; row < rows; row += side, x += side * x_row) {
    for (std::int64_t column = 0; column < columns; column += side) {
      transpose_tile<bytes>(x + column * bytes, x_row, stage + column * staged_pitch + row * bytes,
                            staged_pitch);
    }
  }
}

HWY_INLINE void empty_stage(const std::byte* stage, std::byte* y, std::int64_t y_row,
                            std::int64_t columns, std::int64_t lines) {
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::int64_t step = static_cast<std::int64_t>(hn::MaxLanes(d));
  const auto copy = [&](std::int64_t at) HWY_ATTR {
    hn::StoreU(hn::Load(d, reinterpret_cast<const std::uint8_t*>(stage + at)), d,
               reinterpret_cast<std::uint8_t*>(y + at));
  };
  for (std::int64_t column = 0; column < columns; ++column, stage += staged_pitch, y += y_row) {
    if (HWY_LIKELY(lines == staged_down)) {
#pragma GCC unroll 16
      for (std::int64_t at = 0; at < staged_down * line_bytes; at += step) copy(at);
    } else {
      for (std::int64_t at = 0; at < lines * line_bytes; at += step) copy(at);
    }
  }
}
#endif

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
