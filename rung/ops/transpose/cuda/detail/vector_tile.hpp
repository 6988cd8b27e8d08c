// SPDX-License-Identifier: Apache-2.0
// The tile of the rung vectorised: read in chunks, packed and turned on its way into shared memory,
// and written in chunks.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/ops/transpose/cuda/detail/chunk.hpp"
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung::transpose_cuda::inline RUNG_TARGET::vectorised {

inline constexpr int sector = 32;

/// A tile in units: a register of 4 bytes, or an element of 8. `lines` says that all rows of y
/// begin at sectors; where they do not, a tile reads a sector's worth of rows more than it writes.
template <class T, bool lines>
struct Shape {
  using Unit = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static constexpr int threads = lines && sizeof(T) <= 2 ? 512 : 256;
  static constexpr int line = 256;                              // bytes of y's rows kept
  static constexpr int overlap = lines ? 0 : sector;            // of them the tile above's, too
  static constexpr int slots = (line - overlap) / chunk_bytes;  // chunks written
  static constexpr int packed =
      sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1;  // rows to a unit
  static constexpr int units = line / sizeof(Unit);         // rows of units
  static constexpr int rows = (line - overlap) / sizeof(T);
  static constexpr int columns = sizeof(T) >= 4 ? 64 : sizeof(T) == 1 && lines ? 256 : 128;
  static constexpr int width = chunk_bytes / sizeof(T);          // columns to a chunk
  static constexpr int unit_chunk = chunk_bytes / sizeof(Unit);  // units to a chunk of y
  static constexpr int across = columns / width;                 // chunks to a row of the tile
  // A warp reads 8 chunks of 4 rows of units: lanes that differ in the chunk write to different
  // groups of 4 banks, those that differ in the row to different banks of the group. Of elements
  // of 4 bytes it reads 16 chunks of 2 rows, with two ways of conflict: that 256 bytes which lie
  // together are asked for at once is worth more.
  static constexpr int abreast = lines && sizeof(T) == 4 ? 16 : 8;
  static constexpr int deep = 32 / abreast;
  static constexpr int rounds = across / abreast * (units / deep) / (threads / 32);
};
template <class T, bool lines>
struct Tile {
  Byte at[Shape<T, lines>::columns][Shape<T, lines>::line];
};
template <class T, bool lines>
inline constexpr Tiling tiling{.rows = Shape<T, lines>::rows,
                               .columns = Shape<T, lines>::columns,
                               .block = Shape<T, lines>::threads,
                               .shared_bytes = sizeof(Tile<T, lines>),
                               .shift = Shape<T, lines>::overlap / static_cast<int>(sizeof(T)),
                               .dependent = true};

/// Where chunk `slot` of a column of the tile is kept.
template <class T, bool lines>
__device__ __forceinline__ Byte* kept(Tile<T, lines>& tile, int column, int slot) {
  return &tile.at[column][(slot ^ (column / Shape<T, lines>::width & 7)) * chunk_bytes];
}

/// Reads the tile: load(row, column) gives 16 bytes of x from there on.
template <class T, bool lines, class Load>
__device__ __forceinline__ void read_tile(Tile<T, lines>& tile, Load load) {
  using S = Shape<T, lines>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  Chunk chunks[S::rounds][S::packed];
  const auto chunk_of = [&](int round) {
    return (round * (S::threads / 32) + warp) % (S::across / S::abreast) * S::abreast +
           lane % S::abreast;
  };
  const auto unit_of = [&](int round) {
    return (round * (S::threads / 32) + warp) / (S::across / S::abreast) * S::deep +
           lane / S::abreast;
  };
  // All loads before the first use.
#pragma unroll
  for (int round = 0; round < S::rounds; ++round) {
#pragma unroll
    for (int i = 0; i < S::packed; ++i) {
      chunks[round][i] = load(unit_of(round) * S::packed + i, chunk_of(round) * S::width);
    }
  }
  // The compiler moves no load behind this. Left alone, it does for 2-byte elements, by chance: on
  // an H200 f16 32768 x 32768 then goes at 3720 GB/s instead of 4099.
  if (lines) __syncwarp();
#pragma unroll
  for (int round = 0; round < S::rounds; ++round) {
    typename S::Unit units[S::width];
    pack_columns<T>(chunks[round], units);
    const int unit = unit_of(round);
#pragma unroll
    for (int i = 0; i < S::width; ++i) {
      Byte* to = kept(tile, chunk_of(round) * S::width + i, unit / S::unit_chunk);
      reinterpret_cast<typename S::Unit*>(to)[unit % S::unit_chunk] = units[i];
    }
  }
}

/// Writes 16 bytes of a column from byte `begin` of its line on; those of low .. high - 1 exist.
/// `to` is where the line begins in y, if it exists.
template <class T, bool lines>
__device__ __forceinline__ void write_chunk(Tile<T, lines>& tile, int column, int begin, int low,
                                            int high, Byte* to) {
  if (begin >= low && begin + chunk_bytes <= high) {
    const int slot = begin / chunk_bytes;
    const int skew = begin % chunk_bytes;
    Chunk chunk = load_aligned(kept(tile, column, slot));
    if (!lines && skew != 0) {
      chunk = shifted(chunk, load_aligned(kept(tile, column, slot + 1)), skew);
    }
    store_aligned(to + begin, chunk);
    return;
  }
  const int end = begin + chunk_bytes < high ? begin + chunk_bytes : high;
  for (int at = begin > low ? begin : low; at < end; at += sizeof(T)) {
    const Byte* from = kept(tile, column, at / chunk_bytes) + at % chunk_bytes;
    *reinterpret_cast<T*>(to + at) = *reinterpret_cast<const T*>(from);
  }
}

}  // namespace rung::transpose_cuda::inline RUNG_TARGET::vectorised
