// SPDX-License-Identifier: Apache-2.0
// Pieces of one dense line of memory and of the planes that it is made of.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/bounds.hpp"
#include "rung/ops/transpose/cuda/detail/chunk.hpp"
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung::transpose_cuda::inline RUNG_TARGET::narrow {

inline constexpr int threads = 256;
inline constexpr int rounds = 4;  // chunks a thread
inline constexpr int tile_bytes = rounds * threads * chunk_bytes;

struct Tile {
  alignas(16) Byte at[tile_bytes];
};

/// The line is x when `splits`, else y.
struct Strip {
  const Byte* x;
  Byte* y;
  std::int64_t length;  // of a plane
  std::int64_t pitch;   // bytes from plane to plane
  int planes;
  int piece;  // indices a block
  Collapsed<2> batch;
  std::int64_t first_matrix;
};

/// What is moved between shared memory and a plane at once: at least a register.
template <class T>
using Unit = std::conditional_t<sizeof(T) <= 4, std::uint32_t, T>;
template <class T>
inline constexpr int together = sizeof(Unit<T>) / sizeof(T);
/// Units to a piece of a plane, which may begin and end within one.
template <class T>
RUNG_HD constexpr int units_of(int piece) {
  return piece / together<T> + (together<T> > 1 ? 1 : 0);
}
/// The most indices, a multiple of 16, of which both sides fit a block.
template <class T>
constexpr int piece_of(int planes) {
  const int units = tile_bytes / planes / static_cast<int>(sizeof(Unit<T>));
  const int line = (tile_bytes - chunk_bytes) / planes / static_cast<int>(sizeof(T));
  return smaller(line, (units - 1) * together<T>) / 16 * 16;
}

/// This block's piece.
template <class T>
struct Piece {
  const Byte *x, *y;
  std::int64_t first;
  int count, skew, bytes;  // of the line: `bytes`, the first of them `skew` past an aligned place

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
/// units of all planes; `base` is where the piece of plane 0 begins.
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

}  // namespace rung::transpose_cuda::inline RUNG_TARGET::narrow
