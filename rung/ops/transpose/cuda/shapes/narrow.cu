// SPDX-License-Identifier: Apache-2.0
// transpose / narrow
//
// Idea     pixels and planes: a matrix of few columns with gapless rows is one long line of memory.
//          A block loads a piece of the line, 16 bytes per access, and stores the same indices of
//          every plane, or the reverse. Shared memory reorders the elements one by one.
// Changes  against vectorized: no tile that a matrix of 3 columns would leave mostly empty.
// Cost     one shared access per element on the planes' side, free of bank conflicts if the number
//          of planes is odd.
// Limits   up to 32 planes, dense: gapless rows of x, or of y.
#include <cstdint>
#include <type_traits>
#include <utility>

#include "rung/core/bounds.hpp"
#include "rung/ops/transpose/cuda/detail/chunk.hpp"
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

constexpr int threads = 256;
constexpr int rounds = 4;  // chunks per thread
constexpr int tile_bytes = rounds * threads * chunk_bytes;

struct StripBuffer {
  alignas(16) Byte at[tile_bytes];
};

/// Kernel arguments. The line is x if planes are split from it (`splits`), else y.
struct Strip {
  const Byte* x;
  Byte* y;
  std::int64_t length;  // elements per plane
  std::int64_t pitch;   // bytes between planes
  int planes;
  int piece;  // indices per block
  Collapsed<2> batch;
  std::int64_t first_matrix;
};

/// Unit of copies between shared memory and a plane: at least a register.
template <class T>
using Unit = std::conditional_t<sizeof(T) <= 4, std::uint32_t, T>;
template <class T>
constexpr int together = sizeof(Unit<T>) / sizeof(T);
/// Returns the number of units that cover a piece of a plane, which may start and end within a
/// unit.
template <class T>
RUNG_HD constexpr int units_of(int piece) {
  return piece / together<T> + (together<T> > 1 ? 1 : 0);
}
/// Returns the largest number of indices, a multiple of 16, for which line and planes fit a block.
template <class T>
constexpr int piece_of(int planes) {
  const int units = tile_bytes / planes / static_cast<int>(sizeof(Unit<T>));
  const int line = (tile_bytes - chunk_bytes) / planes / static_cast<int>(sizeof(T));
  return smaller(line, (units - 1) * together<T>) / 16 * 16;
}

/// Piece of the line that this block moves.
template <class T>
struct Piece {
  const Byte *x, *y;
  std::int64_t first;
  int count, skew, bytes;  // of the line: `bytes`, which start `skew` bytes past an aligned address

  __device__ __forceinline__ Piece(const Strip& s, bool splits) {
    constexpr int size = sizeof(T);
    std::int64_t at[2];
    s.batch.offsets(s.first_matrix + blockIdx.y, at);
    first = std::int64_t{blockIdx.x} * s.piece;
    count = static_cast<int>(s.length - first < s.piece ? s.length - first : s.piece);
    x = s.x + (at[1] + first * (splits ? s.planes : 1)) * size;
    y = s.y + (at[0] + first * (splits ? 1 : s.planes)) * size;
    skew = skew_of(splits ? x : y);
    bytes = count * s.planes * size;
  }
};

/// Calls f(plane, index of the first element, bytes before the piece's first) for this thread's
/// units of all planes; `base` is the address of plane 0's piece.
template <class T, class F>
__device__ __forceinline__ void for_each_unit(const Strip& s, const Byte* base, F f) {
  const int units = units_of<T>(s.piece);
  constexpr int most = tile_bytes / static_cast<int>(sizeof(Unit<T>)) / threads;
#pragma unroll
  for (int round = 0; round < most; ++round) {
    const int at = round * threads + static_cast<int>(threadIdx.x);
    const int plane = at / units;
    const Byte* from = base + plane * s.pitch;
    const int before = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) % sizeof(Unit<T>)) /
                       static_cast<int>(sizeof(T));
    if (plane < s.planes) f(round, plane, (at - plane * units) * together<T> - before, from);
  }
}

constexpr std::int64_t max_planes = 32;

/// Gathers planes of y from the line x.
template <class T>
__global__ void __launch_bounds__(threads) transpose_split(Strip s) {
  constexpr int size = sizeof(T);
  Byte* kept = shared<StripBuffer>().at;
  const Piece<T> piece(s, true);
  const int end = piece.skew + piece.bytes;
  Chunk chunks[rounds];
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    const int at = (i * threads + static_cast<int>(threadIdx.x)) * chunk_bytes;
    if (at >= piece.skew && at + chunk_bytes <= end) {
      chunks[i] = load_aligned(piece.x - piece.skew + at);
    }
  }
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    const int at = (i * threads + static_cast<int>(threadIdx.x)) * chunk_bytes;
    if (at >= piece.skew && at + chunk_bytes <= end) {
      store_aligned(kept + at, chunks[i]);
    } else {  // the piece's ends
      for (int b = at > piece.skew ? at : piece.skew; b < at + chunk_bytes && b < end; b += size) {
        *reinterpret_cast<T*>(kept + b) = *reinterpret_cast<const T*>(piece.x - piece.skew + b);
      }
    }
  }
  __syncthreads();
  for_each_unit<T>(s, piece.y, [&](int, int plane, int index, const Byte* plane_start) {
    const T* from = reinterpret_cast<const T*>(kept + piece.skew) + plane;
    T* to = reinterpret_cast<T*>(const_cast<Byte*>(plane_start));
    if (index >= 0 && index + together<T> <= piece.count) {
      if constexpr (together<T> == 1) {
        to[index] = from[index * s.planes];
      } else {
        std::uint32_t unit = 0;
#pragma unroll
        for (int i = 0; i < together<T>; ++i) {
          unit |= std::uint32_t{from[(index + i) * s.planes]} << i * 8 * size;
        }
        *reinterpret_cast<std::uint32_t*>(to + index) = unit;
      }
      return;
    }
    for (int i = 0; i < together<T>; ++i) {
      const int k = index + i;
      if (k >= 0 && k < piece.count) to[k] = from[k * s.planes];
    }
  });
}

/// Scatters planes of x to the line y.
template <class T>
__global__ void __launch_bounds__(threads) transpose_merge(Strip s) {
  constexpr int size = sizeof(T);
  Byte* kept = shared<StripBuffer>().at;
  const Piece<T> piece(s, false);
  const int end = piece.skew + piece.bytes;
  Unit<T> units[tile_bytes / sizeof(Unit<T>) / threads];
  for_each_unit<T>(s, piece.x, [&](int round, int, int index, const Byte* from) {
    if (index < 0 || index + together < T >> piece.count) return;
    units[round] = *reinterpret_cast<const Unit<T>*>(from + index * size);
  });
  for_each_unit<T>(s, piece.x, [&](int round, int plane, int index, const Byte* from) {
    T* to = reinterpret_cast<T*>(kept + piece.skew) + plane;
    if (index >= 0 && index + together<T> <= piece.count) {
      if constexpr (together<T> == 1) {
        to[index * s.planes] = units[round];
      } else {
#pragma unroll
        for (int i = 0; i < together<T>; ++i) {
          to[(index + i) * s.planes] = static_cast<T>(units[round] >> i * 8 * size);
        }
      }
      return;
    }
    for (int i = 0; i < together<T>; ++i) {
      const int k = index + i;
      if (k >= 0 && k < piece.count) to[k * s.planes] = reinterpret_cast<const T*>(from)[k];
    }
  });
  __syncthreads();
  Byte* y = const_cast<Byte*>(piece.y) - piece.skew;
#pragma unroll
  for (int i = 0; i < rounds; ++i) {
    const int at = (i * threads + static_cast<int>(threadIdx.x)) * chunk_bytes;
    if (at >= piece.skew && at + chunk_bytes <= end) {
      store_aligned(y + at, load_aligned(kept + at));
    } else {
      for (int b = at > piece.skew ? at : piece.skew; b < at + chunk_bytes && b < end; b += size) {
        *reinterpret_cast<T*>(y + b) = *reinterpret_cast<const T*>(kept + b);
      }
    }
  }
}

bool splits(const Moves& m) {
  return m.columns <= max_planes && m.columns <= m.rows && m.x_row == m.columns;
}
bool merges(const Moves& m) {
  return m.rows <= max_planes && m.rows <= m.columns && m.y_row == m.rows;
}

Support supports(const Transpose::Args& args, const Context&) {
  const Moves& m = args.moves;
  if (const Support dense = require_dense(m); !dense) return dense;
  if (m.empty() || splits(m) || merges(m)) return supported;
  return unsupported("takes up to 32 columns or rows, without gaps between them");
}

Work work(const Transpose::Args& args, const Context&) {
  const bool split = splits(args.moves);
  const int planes = static_cast<int>(split ? args.moves.columns : args.moves.rows);
  Work work;
  with_words<1, 2, 4, 8, 16>(args, [&]<class T>() {
    Tiling tiles{.rows = planes,
                 .columns = piece_of<T>(planes),
                 .block = threads,
                 .shared_bytes = sizeof(StripBuffer)};
    if (split) std::swap(tiles.rows, tiles.columns);
    work = tiles_work(args, tiles);
  });
  return work;
}

void run(const Transpose::Args& args, Context& context) {
  constexpr std::int64_t max_matrices = 0xffff;
  const Moves& m = args.moves;
  with_words<1, 2, 4, 8, 16>(args, [&]<class T>() {
    const bool split = splits(m);
    Strip strip{.x = static_cast<const Byte*>(args.x.data),
                .y = static_cast<Byte*>(args.y.data),
                .length = split ? m.rows : m.columns,
                .pitch = (split ? m.y_row : m.x_row) * static_cast<std::int64_t>(sizeof(T)),
                .planes = static_cast<int>(split ? m.columns : m.rows),
                .piece = 0,
                .batch = m.batch,
                .first_matrix = 0};
    strip.piece = piece_of<T>(strip.planes);
    for (; strip.first_matrix < m.matrices(); strip.first_matrix += max_matrices) {
      launch(context,
             {.grid = {ceil_div<std::int64_t>(strip.length, strip.piece),
                       smaller(max_matrices, m.matrices() - strip.first_matrix), 1},
              .block = threads,
              .shared_bytes = sizeof(StripBuffer)},
             split ? transpose_split<T> : transpose_merge<T>, strip);
    }
  });
}

const Rung<Transpose> self{{.name = "narrow",
                            .after = "vectorized",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
