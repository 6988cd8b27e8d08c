// SPDX-License-Identifier: Apache-2.0
// Code of transpose's CUDA rungs: opaque elements as types, kernel arguments, the division into
// launches, and the work of a launch.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/transpose/op/transpose.hpp"

namespace rung::transpose_cuda::inline RUNG_TARGET {

using Moves = Transpose::Moves;

/// Type of an opaque element: a part of a register, or one, two or four registers.
template <int bytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = std::uint8_t;
};
template <>
struct WordOf<2> {
  using Type = std::uint16_t;
};
template <>
struct WordOf<4> {
  using Type = std::uint32_t;
};
template <>
struct WordOf<8> {
  using Type = std::uint64_t;
};
template <>
struct WordOf<16> {
#if defined(__CUDACC__)
  using Type = uint4;
#else
  // A vector type: each member of a structure would be a separate access.
  typedef unsigned Type __attribute__((vector_size(16)));
#endif
};
template <int bytes>
using Word = typename WordOf<bytes>::Type;

/// Calls f.template operator()<T>() with a T of args' element size, which must be among `sizes`;
/// does nothing if there are no elements.
template <int... sizes, class F>
void with_words(const Transpose::Args& args, F&& f) {
  if (args.moves.empty()) return;
  ((args.moves.element_bytes == sizes ? f.template operator()<Word<sizes>>() : void()), ...);
}

/// Typed matrices, a kernel argument; block (x, y, z) of a kernel transposes tile x down and y
/// across of matrix z. Grids have limits: larger problems are divided into launches with shifted
/// pointers, of fewer than 2^31 rows and columns each, so that kernels may index them by int.
/// Strides are always 64 bits.
template <class T>
struct Matrices {
  const T* x;
  T* y;
  int rows, columns;
  std::int64_t x_row, x_column, y_row, y_column;
  Collapsed<2> batch;
  std::int64_t first_matrix;
  bool colliding_rows;  // result of collide() for x

  struct Matrix {
    const T* x;
    T* y;
  };
  /// Returns the start of a block's matrix. Matrices stays in constant memory: a kernel parameter
  /// that is modified or copied moves to local memory, 300 bytes per thread.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Matrix matrix(unsigned block) const {
    std::int64_t at[2];
    batch.offsets(first_matrix + block, at);
    return {x + at[1], y + at[0]};
  }

  /// Returns the column of tiles of a block, given the number of blocks across. If rows of x
  /// collide, odd blocks process the far half of x: concurrent columns are half a row apart.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE int column_of_tiles(unsigned block,
                                                               unsigned blocks) const {
    const unsigned column = colliding_rows ? block / 2 + block % 2 * ((blocks + 1) / 2) : block;
    return static_cast<int>(column);
  }
};

/// Waits for the previous grid; a kernel whose launch overlaps that grid calls it first. The next
/// grid is not started early, as start_dependent() would: its blocks would delay this grid's last
/// ones.
__device__ __forceinline__ void wait_for_grid_in_front() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  ptx::wait_for_earlier_grid();
#endif
}

/// Tile size, block size and shared memory of a kernel.
struct Tiling {
  int rows, columns;  // rows and columns of x per tile
  LaunchExtent block;
  std::size_t shared_bytes = 0;
  int shift = 0;           // rows by which a tile may start earlier
  bool dependent = false;  // the kernel starts with wait_for_grid_in_front()
};

/// Returns the tiling with enough shared memory requested to limit an SM to four blocks: these
/// saturate memory, and more would scatter its accesses.
inline Tiling with_few_blocks(Tiling tiling, const Context& context) {
  constexpr int max_blocks = 4;
  tiling.shared_bytes =
      larger(tiling.shared_bytes, context.info().shared_per_sm / (max_blocks + 1));
  return tiling;
}

/// Returns whether rows of x are an odd multiple of 128 KiB apart, for which memory is slow to read
/// down a column, for any element size. Other distances are faster in the plain order
/// (EXPERIMENTS.md).
inline bool collide(const Moves& m) {
  constexpr std::int64_t colliding_bytes = std::int64_t{128} << 10;
  const std::int64_t distance = m.x_row * m.element_bytes;
  return distance % colliding_bytes == 0 && distance / colliding_bytes % 2 != 0;
}

/// Launches kernel(matrices, more...) over all tiles, down the columns of x, so that concurrent
/// stores are close together. This matters more for stores than for loads: on an H200, 4070 GB/s
/// instead of 3950 along the rows of x, and at odd sizes 3280 instead of 2260.
template <class T, class Kernel, class... More>
void launch_tiles(Context& context, const Tiling& tiling, Kernel kernel,
                  const Transpose::Args& args, const More&... more) {
  constexpr std::int64_t max_blocks = 0xffff;  // along y and z
  const Moves& m = args.moves;
  const std::int64_t max_rows = (std::int64_t{1} << 30) / tiling.rows * tiling.rows;
  const std::int64_t max_columns = max_blocks * tiling.columns;
  for (std::int64_t first = 0; first < m.matrices(); first += max_blocks) {
    const std::int64_t matrices = smaller(max_blocks, m.matrices() - first);
    for (std::int64_t j = 0; j < m.columns; j += max_columns) {
      for (std::int64_t i = 0; i < m.rows; i += max_rows) {
        const Matrices<T> part{static_cast<const T*>(args.x.data) + i * m.x_row + j * m.x_column,
                               static_cast<T*>(args.y.data) + j * m.y_row + i * m.y_column,
                               static_cast<int>(smaller(max_rows, m.rows - i)),
                               static_cast<int>(smaller(max_columns, m.columns - j)),
                               m.x_row,
                               m.x_column,
                               m.y_row,
                               m.y_column,
                               m.batch,
                               first,
                               collide(m)};
        launch(context,
               {.grid = {ceil_div<std::int64_t>(part.rows + tiling.shift, tiling.rows),
                         ceil_div<std::int64_t>(part.columns, tiling.columns), matrices},
                .block = tiling.block,
                .shared_bytes = tiling.shared_bytes,
                .dependent = tiling.dependent && can_depend(context)},
               kernel, part, more...);
      }
    }
  }
}

/// Returns supported for the element size of the teaching rungs.
inline Support require_words(const Transpose::Args& args, const Context&) {
  if (args.moves.empty()) return supported;
  if (args.moves.element_bytes != 4) return unsupported("takes elements of 4 bytes");
  return args.moves.run == 1 ? supported : unsupported("takes no runs of several elements");
}

inline Support require_dense(const Moves& m) {
  if (m.empty() || m.dense()) return supported;
  return unsupported("x and y must each be dense along one axis, and not along the same");
}

/// Returns whether all rows of all matrices of tensor 0 (y) or 1 (x) start at multiples of `bytes`.
inline bool rows_aligned(const Moves& m, const void* data, std::int64_t row, std::int64_t rows,
                         int tensor, int bytes) {
  const auto whole = [&](std::int64_t stride) { return stride * m.element_bytes % bytes == 0; };
  bool all = reinterpret_cast<std::uintptr_t>(data) % bytes == 0 && (rows == 1 || whole(row));
  for (int axis = 0; axis < m.batch.rank; ++axis) all &= whole(m.batch.strides[tensor][axis]);
  return all;
}

/// Returns the work of launch_tiles(). Partial tiles take as long as full ones: operations count
/// the bytes of all tiles at full size.
inline Work tiles_work(const Transpose::Args& args, const Tiling& tiling) {
  constexpr std::int64_t max_blocks = 0xffff, sm_bytes = 228 << 10, reserved = 1 << 10;
  const Moves& m = args.moves;
  const std::int64_t threads = tiling.block.x * tiling.block.y;
  const std::int64_t tiles = ceil_div<std::int64_t>(m.rows + tiling.shift, tiling.rows) *
                             ceil_div<std::int64_t>(m.columns, tiling.columns) * m.matrices();
  const std::int64_t elements =
      smaller<std::int64_t>(tiling.rows, m.rows) * smaller<std::int64_t>(tiling.columns, m.columns);
  const auto shared_bytes = static_cast<std::int64_t>(tiling.shared_bytes) + reserved;
  return {.operations = 2.0 * static_cast<double>(tiles) * tiling.rows * tiling.columns *
                        static_cast<double>(m.run * m.element_bytes),
          .launches =
              ceil_div(m.matrices(), max_blocks) * ceil_div(m.columns, max_blocks * tiling.columns),
          .blocks = tiles,
          .resident = smaller(smaller(2048 / threads, std::int64_t{32}), sm_bytes / shared_bytes),
          .rounds = 2 + ceil_div(elements, threads)};
}

}  // namespace rung::transpose_cuda::inline RUNG_TARGET
