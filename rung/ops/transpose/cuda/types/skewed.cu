// SPDX-License-Identifier: Apache-2.0
// transpose / skewed
//
// Idea     unaligned rows of y are still cut at sector boundaries: every column of a tile is
//          shifted up by its row's offset within a sector. The tile is sheared, and reloads the few
//          rows at its upper edge that the tile above has loaded. All stores but those at the ends
//          of y's rows are whole sectors in 16-byte accesses.
// Changes  against vectorized: elements are loaded one by one, so that no row of x has to be
//          shifted, and are stored to shared memory in their final position.
// Cost     4-byte elements: 4 loads, 4 shared stores with 4-way bank conflicts, a shared load and a
//          store per 16 bytes.
// Limits   elements of 4, 8 and 16 bytes, dense in x along one axis and in y along another. With
//          aligned rows it matches vectorized, and is 4 % faster for 8 bytes.
#include "rung/ops/transpose/cuda/detail/chunk.hpp"
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

constexpr int sector = 32;
constexpr int threads = 256;

template <class T>
struct Shape {
  static constexpr int size = sizeof(T);
  static constexpr int rows = size == 16 ? 32 : 64;  // stored
  static constexpr int columns = size == 4 ? 64 : 32;
  static constexpr int above = sector / size - 1;  // additional rows loaded
  static constexpr int step = threads / columns;
  static constexpr int passes = (rows + above + step - 1) / step;
  static constexpr int width = chunk_bytes / size;
  static constexpr int slots = rows / width;
};
template <class T>
struct TileBuffer {
  alignas(16) T at[Shape<T>::columns][Shape<T>::rows + Shape<T>::width];
};
template <class T>
constexpr Tiling tiling{.rows = Shape<T>::rows,
                        .columns = Shape<T>::columns,
                        .block = threads,
                        .shared_bytes = sizeof(TileBuffer<T>),
                        .shift = Shape<T>::above,
                        .dependent = true};

/// Returns the offset of an address within its sector, in elements.
template <class T>
__device__ __forceinline__ int past_sector(const T* place) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(place) % sector / sizeof(T));
}

template <class T>
__global__ void __launch_bounds__(threads, 1)
    transpose_skewed(const __grid_constant__ Matrices<T> m) {
  wait_for_grid_in_front();
  using S = Shape<T>;
  TileBuffer<T>& tile = shared<TileBuffer<T>>();
  const auto [x, y] = m.matrix(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.x) * S::rows;
  const int first_column = m.column_of_tiles(blockIdx.y, gridDim.y) * S::columns;
  const int columns = m.columns - first_column < S::columns ? m.columns - first_column : S::columns;
  T* to = y + first_column * m.y_row + first_row;
  {
    const int column = static_cast<int>(threadIdx.x) % S::columns;
    // this thread's first row
    const int first = static_cast<int>(threadIdx.x) / S::columns - S::above;
    const T* from = x + (first_row + first) * m.x_row + first_column + column;
    T values[S::passes];
    if (first_row >= S::above && first_row + S::rows + S::step <= m.rows && columns == S::columns) {
#pragma unroll
      for (int i = 0; i < S::passes; ++i) values[i] = __ldg(from + i * S::step * m.x_row);
    } else {
#pragma unroll
      for (int i = 0; i < S::passes; ++i) {
        const int row = first_row + first + i * S::step;
        if (row >= 0 && row < m.rows && column < columns)
          values[i] = __ldg(from + i * S::step * m.x_row);
      }
    }
    const int skew = past_sector(to + column * m.y_row);
#pragma unroll
    for (int i = 0; i < S::passes; ++i) {
      const int place = first + i * S::step + skew;
      if (place >= 0 && place < S::rows) tile.at[column][place] = values[i];
    }
  }
  __syncthreads();
#pragma unroll 4
  for (int at = static_cast<int>(threadIdx.x); at < S::columns * S::slots; at += threads) {
    const int column = at / S::slots;
    if (column >= columns) break;
    const T* from = &tile.at[column][at % S::slots * S::width];
    T* row = to + column * m.y_row;
    const int begin = at % S::slots * S::width - past_sector(row);  // relative to first_row
    if (first_row + begin >= 0 && first_row + begin + S::width <= m.rows) {
      *reinterpret_cast<Word<16>*>(row + begin) = *reinterpret_cast<const Word<16>*>(from);
      continue;
    }
    for (int i = 0; i < S::width; ++i) {
      const int k = first_row + begin + i;
      if (k >= 0 && k < m.rows) row[begin + i] = from[i];
    }
  }
}

Support supports(const Transpose::Args& args, const Context&) {
  if (args.moves.element_bytes < 4) return unsupported("takes elements of 4, 8 and 16 bytes");
  return require_dense(args.moves);
}

/// Returns the tiling; without a shift if rows of y start on sectors.
template <class T>
Tiling tiling_of(const Transpose::Args& args, const Context& context) {
  const Moves& m = args.moves;
  Tiling tiles = with_few_blocks(tiling<T>, context);
  if (rows_aligned(m, args.y.data, m.y_row, m.columns, 0, sector)) tiles.shift = 0;
  return tiles;
}

Work work(const Transpose::Args& args, const Context& context) {
  Work work;
  with_words<4, 8, 16>(args,
                       [&]<class T>() { work = tiles_work(args, tiling_of<T>(args, context)); });
  return work;
}

void run(const Transpose::Args& args, Context& context) {
  with_words<4, 8, 16>(args, [&]<class T>() {
    launch_tiles<T>(context, tiling_of<T>(args, context), transpose_skewed<T>, args);
  });
}

const Rung<Transpose> self{{.name = "skewed",
                            .after = "vectorized",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
