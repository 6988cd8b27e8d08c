// SPDX-License-Identifier: Apache-2.0
// transpose / vectorised
//
// Idea     every access to global memory has 16 bytes, whatever the element: a tile is read in rows
//          of 128 or 256 bytes and written in rows of 256. Elements of less than a register are
//          packed first, by byte permutes: 4 rows of bytes, or 2 of halves, make one row of whole
//          registers, and only those go through shared memory, swizzled.
// Changes  against coarsened: a fourth to a sixteenth of the instructions for the same bytes. Rows
//          that begin anywhere are read by aligned accesses too, two for each chunk, of which the
//          second is the neighbour's first and comes from L1; and they are shifted into place in
//          registers. On the way out the shift happens between shared memory and the store, so that
//          only the ends of a tile's rows are written in pieces.
// Cost     4-byte elements: a load, 4 shared stores, a shared load and a store for 16 bytes.
// Limits   elements of 1, 2, 4 and 8 bytes, dense in x along one axis and in y along another.
// Tried    -
// Source   sub-word packing after NVIDIA's PTX ISA, "prmt"; the swizzle is that of CUTLASS.
#include "rung/ops/transpose/cuda_chunk.hpp"
#include "rung/ops/transpose/cuda_matrices.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

constexpr int threads = 256;
constexpr int line = 256;                  // bytes of y's rows in a tile
constexpr int slots = line / chunk_bytes;  // chunks in it

/// A tile in units: a register of 4 bytes, or an element of 8.
template <class T>
struct Shape {
  using Unit = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static constexpr int packed = sizeof(Unit) / sizeof(T);  // rows to a unit
  static constexpr int units = line / sizeof(Unit);        // rows of units
  static constexpr int rows = units * packed;
  static constexpr int columns = sizeof(T) <= 2 ? 128 : 64;
  static constexpr int width = chunk_bytes / sizeof(T);          // columns to a chunk
  static constexpr int unit_chunk = chunk_bytes / sizeof(Unit);  // units to a chunk of y
  static constexpr int across = columns / width;                 // chunks to a row of the tile
  // A warp reads 8 chunks of 4 rows of units: lanes that differ in the chunk write to different
  // groups of 4 banks, those that differ in the row to different banks of the group.
  static constexpr int rounds = across / 8 * (units / 4) / (threads / 32);
};
template <class T>
struct Tile {
  Byte at[Shape<T>::columns][line];
};
template <class T>
constexpr Tiling tiling{.rows = Shape<T>::rows,
                        .columns = Shape<T>::columns,
                        .block = threads,
                        .shared_bytes = sizeof(Tile<T>)};

/// Where chunk `slot` of a column of the tile is kept.
template <class T>
__device__ __forceinline__ Byte* kept(Tile<T>& tile, int column, int slot) {
  return &tile.at[column][(slot ^ (column / Shape<T>::width & 7)) * chunk_bytes];
}

/// Reads the tile: load(row, column) gives 16 bytes of x from there on.
template <class T, class Load>
__device__ __forceinline__ void read_tile(Tile<T>& tile, Load load) {
  using S = Shape<T>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  Chunk chunks[S::rounds][S::packed];
  const auto chunk_of = [&](int round) {
    return (round * (threads / 32) + warp) % (S::across / 8) * 8 + lane % 8;
  };
  const auto unit_of = [&](int round) {
    return (round * (threads / 32) + warp) / (S::across / 8) * 4 + lane / 8;
  };
  // All loads before the first use.
#pragma unroll
  for (int round = 0; round < S::rounds; ++round) {
#pragma unroll
    for (int i = 0; i < S::packed; ++i) {
      chunks[round][i] = load(unit_of(round) * S::packed + i, chunk_of(round) * S::width);
    }
  }
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

/// Writes 16 bytes at byte `begin` of a column's row of y, an aligned place; `bytes` exist.
template <class T>
__device__ __forceinline__ void write_chunk(Tile<T>& tile, int column, int begin, int bytes,
                                            Byte* row) {
  if (begin >= 0 && begin + chunk_bytes <= bytes) {
    const int slot = begin / chunk_bytes;
    const Chunk low = load_aligned(kept(tile, column, slot));
    const int skew = begin % chunk_bytes;
    store_aligned(row + begin,
                  skew == 0 ? low : shifted(low, load_aligned(kept(tile, column, slot + 1)), skew));
    return;
  }
  const int end = begin + chunk_bytes < bytes ? begin + chunk_bytes : bytes;
  for (int at = begin > 0 ? begin : 0; at < end; at += sizeof(T)) {
    const Byte* from = kept(tile, column, at / chunk_bytes) + at % chunk_bytes;
    *reinterpret_cast<T*>(row + at) = *reinterpret_cast<const T*>(from);
  }
}

/// `begin` and `end` enclose the bytes of x that may be read.
template <class T>
__global__ void __launch_bounds__(threads)
    transpose_vectorised(Matrices<T> m, const Byte* begin, const Byte* end, bool aligned_x,
                         bool aligned_y) {
  using S = Shape<T>;
  constexpr int size = sizeof(T);
  Tile<T>& tile = shared<Tile<T>>();
  m.enter(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * S::rows;
  const int first_column = static_cast<int>(blockIdx.x) * S::columns;
  const int rows = m.rows - first_row < S::rows ? m.rows - first_row : S::rows;
  const int columns = m.columns - first_column < S::columns ? m.columns - first_column : S::columns;
  const std::int64_t x_row = m.x_row * size;
  const Byte* x = reinterpret_cast<const Byte*>(m.x) + first_row * x_row + first_column * size;
  const bool whole = rows == S::rows && columns == S::columns;
  // Chunks that enclose the tile's first and last row; rows may run backwards.
  const Byte* last = x + (S::rows - 1) * x_row;
  const Byte* lowest = x < last ? x : last;
  const Byte* highest = (x < last ? last : x) + S::columns * size;
  if (whole && aligned_x) {
    read_tile<T>(
        tile, [&](int row, int column) { return load_aligned(x + row * x_row + column * size); });
  } else if (whole && lowest - chunk_bytes >= begin && highest + chunk_bytes <= end) {
    read_tile<T>(tile,
                 [&](int row, int column) { return load_skewed(x + row * x_row + column * size); });
  } else {
    read_tile<T>(tile, [&](int row, int column) {
      const int valid = row < rows ? (columns - column) * size : 0;
      return load_part<T>(x + row * x_row + column * size, valid);
    });
  }
  __syncthreads();
  Byte* y = reinterpret_cast<Byte*>(m.y) + (first_column * m.y_row + first_row) * size;
  const std::int64_t y_row = m.y_row * size;
  const int bytes = rows * size;
  if (aligned_y) {
    for (int at = static_cast<int>(threadIdx.x); at < columns * slots; at += threads) {
      write_chunk(tile, at / slots, at % slots * chunk_bytes, bytes, y + at / slots * y_row);
    }
  } else {  // a skewed row touches one chunk more
    for (int at = static_cast<int>(threadIdx.x); at < columns * (slots + 1); at += threads) {
      const int column = at / (slots + 1);
      Byte* row = y + column * y_row;
      write_chunk(tile, column, at % (slots + 1) * chunk_bytes - skew_of(row), bytes, row);
    }
  }
}

Support supports(const Transpose::Args& args, const Context&) {
  if (args.moves.element_bytes > 8) return unsupported("takes elements of 1, 2, 4 and 8 bytes");
  return require_dense(args.moves);
}

double estimate(const Transpose::Args& args, const Context& context) {
  const Moves& m = args.moves;
  const bool even = rows_aligned(m, args.x.data, m.x_row, m.rows, 1) &&
                    rows_aligned(m, args.y.data, m.y_row, m.columns, 0);
  double seconds = 0;
  with_words<1, 2, 4, 8>(args, [&]<class T>() {
    seconds = tiled_seconds(args, context, tiling<T>, even ? 0.95 : 0.88);
  });
  return seconds;
}

void run(const Transpose::Args& args, Context& context) {
  const Moves& m = args.moves;
  const ByteRange range = byte_range(args.x);
  with_words<1, 2, 4, 8>(args, [&]<class T>() {
    launch_tiles<T>(context, tiling<T>, transpose_vectorised<T>, args,
                    reinterpret_cast<const Byte*>(range.begin),
                    reinterpret_cast<const Byte*>(range.end),
                    rows_aligned(m, args.x.data, m.x_row, m.rows, 1),
                    rows_aligned(m, args.y.data, m.y_row, m.columns, 0));
  });
}

const Rung<Transpose> self{{.name = "vectorised",
                            .step = 70,
                            .after = "coarsened",
                            .backend = device_backend,
                            .supports = supports,
                            .estimate = estimate,
                            .run = run}};

}  // namespace
}  // namespace rung
