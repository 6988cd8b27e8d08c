// SPDX-License-Identifier: Apache-2.0
// transpose / vectorized
//
// Idea     every global access moves 16 bytes of any element type: a tile is loaded in rows of 128
//          or 256 bytes and stored in rows of 256. Elements smaller than a register are packed by
//          byte permutes: 4 rows of bytes, or 2 of halves, become one row of registers, which
//          passes through swizzled shared memory.
// Changes  against coarsened: a fourth to a sixteenth of the instructions for the same bytes.
//          Unaligned rows of x take two aligned loads per chunk, the second an L1 hit, and are
//          shifted in registers; unaligned rows of y are shifted before the store. Tiles then end
//          at y's sector boundaries and reload some rows of the tile above, so that only the ends
//          of y's rows are partial.
// Cost     4-byte elements: a load, 4 shared stores, a shared load and a store per 16 bytes.
// Limits   elements of 1, 2, 4 and 8 bytes, dense in x along one axis and in y along another.
//          Shifts reduce the throughput of 1- and 2-byte elements at odd sizes by a fifth to a
//          fourth.
// Source   sub-word packing after NVIDIA's PTX ISA, "prmt"; the swizzle is CUTLASS's.
#include <cstdint>
#include <type_traits>

#include "rung/ops/transpose/cuda/detail/chunk.hpp"
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

constexpr int sector = 32;

/// Shape of a tile in units: a register of 4 bytes, or an element of 8. `lines`: all rows of y
/// start on sectors; otherwise a tile loads a sector's worth of rows more than it stores.
template <class T, bool lines>
struct Shape {
  using Unit = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  static constexpr int threads = lines && sizeof(T) <= 2 ? 512 : 256;
  static constexpr int line = 256;                              // bytes of a row of y per tile
  static constexpr int overlap = lines ? 0 : sector;            // bytes that the tile above stores
  static constexpr int slots = (line - overlap) / chunk_bytes;  // chunks stored
  static constexpr int packed =
      sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1;  // rows per unit
  static constexpr int units = line / sizeof(Unit);         // rows of units
  static constexpr int rows = (line - overlap) / sizeof(T);
  static constexpr int columns = sizeof(T) >= 4 ? 64 : sizeof(T) == 1 && lines ? 256 : 128;
  static constexpr int width = chunk_bytes / sizeof(T);          // columns per chunk
  static constexpr int unit_chunk = chunk_bytes / sizeof(Unit);  // units per chunk of y
  static constexpr int across = columns / width;                 // chunks per row of the tile
  // A warp loads 8 chunks of 4 rows of units: lanes of different chunks store to different groups
  // of 4 banks, lanes of different rows to different banks of a group. For 4-byte elements it loads
  // 16 chunks of 2 rows with two-way conflicts: one request for 256 contiguous bytes gains more.
  static constexpr int abreast = lines && sizeof(T) == 4 ? 16 : 8;
  static constexpr int deep = 32 / abreast;
  static constexpr int rounds = across / abreast * (units / deep) / (threads / 32);
};
template <class T, bool lines>
struct TileBuffer {
  Byte at[Shape<T, lines>::columns][Shape<T, lines>::line];
};
template <class T, bool lines>
constexpr Tiling tiling{.rows = Shape<T, lines>::rows,
                        .columns = Shape<T, lines>::columns,
                        .block = Shape<T, lines>::threads,
                        .shared_bytes = sizeof(TileBuffer<T, lines>),
                        .shift = Shape<T, lines>::overlap / static_cast<int>(sizeof(T)),
                        .dependent = true};

/// Returns the address of chunk `slot` of a column of the tile.
template <class T, bool lines>
__device__ __forceinline__ Byte* kept(TileBuffer<T, lines>& tile, int column, int slot) {
  return &tile.at[column][(slot ^ (column / Shape<T, lines>::width & 7)) * chunk_bytes];
}

/// Loads the tile; load(row, column) returns 16 bytes of x from that element on.
template <class T, bool lines, class Load>
__device__ __forceinline__ void read_tile(TileBuffer<T, lines>& tile, Load load) {
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
  // Keeps the compiler from moving loads past this point. For 2-byte elements it does so otherwise:
  // f16 32768 x 32768 on an H200 then runs at 3720 GB/s instead of 4099.
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

/// Stores bytes [begin, begin + 16) of a column's line of the tile to y, clipped to [low, high),
/// the part of the line that is in y. `to` is the address of byte 0 of the line, which may be
/// outside y.
template <class T, bool lines>
__device__ __forceinline__ void write_chunk(TileBuffer<T, lines>& tile, int column, int begin,
                                            int low, int high, Byte* to) {
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

/// Transposes a tile per block; `begin` and `end` bound the bytes of x that may be read.
template <class T, bool lines>
__global__ void __launch_bounds__(Shape<T, lines>::threads)
    transpose_vectorized(const __grid_constant__ Matrices<T> m, const Byte* begin, const Byte* end,
                         bool aligned_x) {
  wait_for_grid_in_front();
  using S = Shape<T, lines>;
  constexpr int size = sizeof(T);
  constexpr int all_rows = S::line / size;
  TileBuffer<T, lines>& tile = shared<TileBuffer<T, lines>>();
  const auto matrix = m.matrix(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.x) * S::rows - S::overlap / size;
  const int first_column = m.column_of_tiles(blockIdx.y, gridDim.y) * S::columns;
  const int columns = m.columns - first_column < S::columns ? m.columns - first_column : S::columns;
  const std::int64_t x_row = m.x_row * size;
  const Byte* x = reinterpret_cast<const Byte*>(matrix.x) + first_row * x_row + first_column * size;
  const bool whole = first_row >= 0 && first_row + all_rows <= m.rows && columns == S::columns;
  // Chunks that enclose the tile's first and last row; row strides may be negative.
  const Byte* last = x + (all_rows - 1) * x_row;
  const Byte* lowest = x < last ? x : last;
  const Byte* highest = (x < last ? last : x) + S::columns * size;
  if (whole && aligned_x) {
    read_tile(tile,
              [&](int row, int column) { return load_aligned(x + row * x_row + column * size); });
  } else if (whole && lowest - chunk_bytes >= begin && highest + chunk_bytes <= end) {
    read_tile(tile,
              [&](int row, int column) { return load_skewed(x + row * x_row + column * size); });
  } else {
    read_tile(tile, [&](int row, int column) {
      const int at = first_row + row;
      const int valid = at >= 0 && at < m.rows ? (columns - column) * size : 0;
      return load_part<T>(x + row * x_row + column * size, valid);
    });
  }
  __syncthreads();
  const int low = first_row < 0 ? -first_row * size : 0;
  const int high = m.rows - first_row < all_rows ? (m.rows - first_row) * size : S::line;
  const std::int64_t y_row = m.y_row * size;
  Byte* y =
      reinterpret_cast<Byte*>(matrix.y) + first_column * y_row + std::int64_t{first_row} * size;
  if (lines && size == 4 && whole) {
    // No branch per chunk: several are in flight.
#pragma unroll 4
    for (int i = 0; i < S::columns * S::slots / S::threads; ++i) {
      const int at = static_cast<int>(threadIdx.x) + i * S::threads;
      const int column = at / S::slots;
      const int slot = at % S::slots;
      store_aligned(y + column * y_row + slot * chunk_bytes,
                    load_aligned(kept(tile, column, slot)));
    }
    return;
  }
  for (int at = static_cast<int>(threadIdx.x); at < columns * S::slots; at += S::threads) {
    const int column = at / S::slots;
    Byte* to = y + column * y_row;
    const int skew = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) % sector);
    write_chunk(tile, column, S::overlap - (lines ? 0 : skew) + at % S::slots * chunk_bytes, low,
                high, to);
  }
}

/// Returns whether rows of y start on sectors, so that no tile stores a partial sector.
bool in_lines(const Transpose::Args& args) {
  const Moves& m = args.moves;
  return rows_aligned(m, args.y.data, m.y_row, m.columns, 0, sector);
}

Support supports(const Transpose::Args& args, const Context&) {
  if (args.moves.element_bytes > 8) return unsupported("takes elements of 1, 2, 4 and 8 bytes");
  return require_dense(args.moves);
}

template <class T, bool lines>
Tiling tiling_of(const Context& context) {
  constexpr bool few = sizeof(T) == 4 && lines;
  return few ? with_few_blocks(tiling<T, lines>, context) : tiling<T, lines>;
}
bool in_chunks(const Transpose::Args& args) {
  const Moves& m = args.moves;
  return rows_aligned(m, args.x.data, m.x_row, m.rows, 1, chunk_bytes);
}

Work work(const Transpose::Args& args, const Context& context) {
  Work work;
  with_words<1, 2, 4, 8>(args, [&]<class T>() {
    work = tiles_work(args,
                      in_lines(args) ? tiling_of<T, true>(context) : tiling_of<T, false>(context));
  });
  return work;
}

void run(const Transpose::Args& args, Context& context) {
  const ByteRange range = byte_range(args.x);
  with_words<1, 2, 4, 8>(args, [&]<class T>() {
    const auto launch_all = [&]<bool lines>() {
      launch_tiles<T>(context, tiling_of<T, lines>(context), transpose_vectorized<T, lines>, args,
                      reinterpret_cast<const Byte*>(range.begin),
                      reinterpret_cast<const Byte*>(range.end), in_chunks(args));
    };
    in_lines(args) ? launch_all.template operator()<true>()
                   : launch_all.template operator()<false>();
  });
}

const Rung<Transpose> self{{.name = "vectorized",
                            .step = 70,
                            .after = "coarsened",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
