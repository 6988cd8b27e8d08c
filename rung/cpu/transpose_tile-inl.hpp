// SPDX-License-Identifier: Apache-2.0
//
// Transposition of tiles of opaque elements in registers. A tile is one cache line of x wide and
// one cache line of y high: 16 x 16 elements of 4 bytes, 64 x 64 of one byte, 4 x 4 of 16.
//
// Method   The unit is a 16-byte block. With P elements per block, row P b + j of x is loaded into
//          block b of vector j, so that the loads transpose blocks. log2(P) rounds of interleaving
//          then transpose P x P elements within all blocks at once.
// Shapes   any strides and alignment, in bytes; elements are contiguous along x's columns and y's
//          rows.
// Cost     elements of 4 bytes, AVX-512: 4 loads, 5 shuffles and a store per 64 bytes.
#if defined(RUNG_CPU_TRANSPOSE_TILE_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_TRANSPOSE_TILE_INL_HPP_
#undef RUNG_CPU_TRANSPOSE_TILE_INL_HPP_
#else
#define RUNG_CPU_TRANSPOSE_TILE_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rung/cpu/short_copy.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Lane type for elements of `bytes`; a 16-byte element is two lanes, which stay together.
template <int bytes>
using LaneOf = std::conditional_t<
    bytes == 1, std::uint8_t,
    std::conditional_t<bytes == 2, std::uint16_t,
                       std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;

/// Number of rows and of columns of a tile.
template <int bytes>
inline constexpr std::int64_t tile_side = line_bytes / bytes;

#if HWY_TARGET != HWY_SCALAR
/// Loads rows of 16 bytes, `step` bytes apart, one per 128-bit block of a vector.
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

/// Moves element (i, j) of each block's square to (j, i): interleaving vectors i and i +
/// per_block/2 rotates the bits of the index (i, j) by one. After as many rounds as i has bits, i
/// and j are exchanged.
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

/// Transposes one tile, limited to the first `groups` (of four) 16-byte groups of x's columns, and
/// calls store(j, byte offset within the line, vector) for the parts of row j of y.
template <int bytes, class Store>
HWY_INLINE void transpose_tile_to(const std::byte* x, std::int64_t x_row, int groups,
                                  Store&& store) {
  const hn::ScalableTag<LaneOf<bytes>> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int vector_bytes = static_cast<int>(hn::MaxLanes(d) * sizeof(LaneOf<bytes>));
  constexpr int per_block = 16 / bytes;                  // elements per block
  constexpr int rows = per_block * (vector_bytes / 16);  // of x, per vector
  // With 32 registers, a tile of elements of 4 bytes or more fits in registers, so that each row is
  // read at once: rows a power of two apart map to one L1 set, and a half-read line would be
  // evicted.
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
    // Stores the parts of a line of y in succession, so that write combining merges them.
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

#if HWY_TARGET <= HWY_AVX3
/// Returns the last `skew` bytes of one vector followed by the first of another: a line of y that
/// begins in the tile above. For vectors of one cache line and elements of 2 bytes or more.
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

/// Transposes one tile, limited to the first `groups` (of four) 16-byte groups of its columns.
template <int bytes>
HWY_INLINE void transpose_tile(const std::byte* x, std::int64_t x_row, std::byte* y,
                               std::int64_t y_row, int groups = 4) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t j = 0; j < groups * 16 / bytes; ++j) {
    for (std::int64_t i = 0; i < tile_side<bytes>; ++i) {
      std::memcpy(y + j * y_row + i * bytes, x + i * x_row + j * bytes, bytes);
    }
  }
#else
  using Lane = LaneOf<bytes>;
  transpose_tile_to<bytes>(x, x_row, groups, [&](int j, int at, auto v) HWY_ATTR {
    hn::StoreU(v, hn::ScalableTag<Lane>(), reinterpret_cast<Lane*>(y + j * y_row + at));
  });
#endif
}

/// Transposes a partial tile by way of a full tile on the stack.
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

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
