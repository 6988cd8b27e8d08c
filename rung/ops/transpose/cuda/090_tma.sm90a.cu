// SPDX-License-Identifier: Apache-2.0
// transpose / tma
//
// Idea     TMA loads the tile: one thread issues the copies of the tile's boxes, the hardware fills
//          edges and swizzles chunks. Threads transpose 4 x 4 elements in registers and store them
//          to y, 16 bytes per access.
// Changes  against vectorized: no address computation for x and no registers for loads in flight;
//          eight blocks with a tile each are resident.
// Cost     4 shared loads of 16 bytes, with 4-way bank conflicts, and 4 stores per 64 bytes.
// Limits   4-byte elements; rows that start on 16-byte boundaries in x and y; one batch axis.
//          Slower than vectorized: f32 32768 x 32768 on an H200, 3971 GB/s against 4072.
// Source   CUDA C++ Programming Guide, "Tensor memory access"; PTX ISA, cp.async.bulk.tensor.
#include "rung/device/ptx/tensor_copy.hpp"
#include "rung/ops/transpose/cuda/detail/chunk.hpp"
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

constexpr int side = 64;  // side of a tile: two boxes of half its width, each 128 bytes wide
constexpr int box_columns = 32;
constexpr int threads = 256;  // one per 4 x 4 elements

struct TileBuffer {
  alignas(1024) Byte boxes[2][side * box_columns * 4];  // the left and the right half
  ptx::MemoryBarrier full;
};

/// Tiles of all matrices, numbered down the columns of x, and the address of y.
struct Tiles {
  int down, across;
  int rows, columns;
  Word<4>* y;
  std::int64_t y_row, y_matrix;
};

__global__ void __launch_bounds__(threads)
    transpose_tma(const __grid_constant__ TensorMap x, const __grid_constant__ Tiles tiles) {
  TileBuffer& tile = shared<TileBuffer>();
  const int number = static_cast<int>(blockIdx.x);
  const int matrix = number / (tiles.down * tiles.across);
  const int first_row = number % tiles.down * side;
  const int first_column = number / tiles.down % tiles.across * side;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    ptx::mbarrier_init(tile.full, 1);
    ptx::mbarrier_fence_init();
    ptx::mbarrier_arrive_expect(tile.full, sizeof(tile.boxes));
    for (int half = 0; half < 2; ++half) {
      ptx::tensor_load(tile.boxes[half], x, {matrix, first_row, first_column + half * box_columns},
                       tile.full);
    }
  }
  // Eight neighboring lanes store a line of y; a thread loads chunk `across` of four rows.
  const int across = thread / 8 % 8;
  const int down = 32 * (thread / 64 % 2) + 4 * (thread % 8);
  const int right = thread / 128;
  const int row = first_row + down;
  const int column = first_column + 32 * right + 4 * across;
  Word<4>* to = tiles.y + matrix * tiles.y_matrix + column * tiles.y_row + row;
  __syncthreads();
  ptx::mbarrier_wait(tile.full, 0);
  Chunk rows[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int place = (down + i) * 128 + across * chunk_bytes;
    rows[i] = load_aligned(tile.boxes[right] + swizzled<Swizzle::bytes_128>(place));
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (column + j >= tiles.columns) break;
    if (row + 4 <= tiles.rows) {
      store_aligned(to + j * tiles.y_row, Chunk{{rows[0][j], rows[1][j], rows[2][j], rows[3][j]}});
      continue;
    }
    for (int i = 0; i < 4; ++i) {
      if (row + i < tiles.rows) to[j * tiles.y_row + i] = rows[i][j];
    }
  }
}

constexpr int box[] = {1, side, box_columns};

/// Returns x as integers, so that the copies preserve NaN bits.
View<const std::int32_t, 3> x_of(const Transpose::Args& args) {
  const Moves& m = args.moves;
  View<const std::int32_t, 3> view;
  view.data = static_cast<const std::int32_t*>(args.x.data);
  view.shape[0] = m.matrices();
  view.shape[1] = m.rows;
  view.shape[2] = m.columns;
  view.strides[0] = m.batch.rank == 1 ? m.batch.strides[1][0] : 0;
  view.strides[1] = m.x_row;
  view.strides[2] = 1;
  return view;
}

std::int64_t tiles_in(const Moves& m) {
  return ceil_div<std::int64_t>(m.rows, side) * ceil_div<std::int64_t>(m.columns, side) *
         m.matrices();
}

Support supports(const Transpose::Args& args, const Context&) {
  const Moves& m = args.moves;
  if (m.empty()) return supported;
  if (m.element_bytes != 4) return unsupported("takes elements of 4 bytes");
  if (const Support dense = require_dense(m); !dense) return dense;
  if (m.batch.rank > 1) return unsupported("takes one batch axis");
  // keeps the index of a block beyond the last within an int
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (m.rows > most || m.columns > most || tiles_in(m) > most) {
    return unsupported("more than 2^30 rows, columns or tiles");
  }
  if (!rows_aligned(m, args.y.data, m.y_row, m.columns, 0, chunk_bytes)) {
    return unsupported("rows of y must begin at multiples of 16 bytes");
  }
  return tensor_map_support(x_of(args), box, Swizzle::bytes_128);
}

Work work(const Transpose::Args& args, const Context&) {
  return tiles_work(
      args, {.rows = side, .columns = side, .block = threads, .shared_bytes = sizeof(TileBuffer)});
}

void run(const Transpose::Args& args, Context& context) {
  const Moves& m = args.moves;
  if (m.empty()) return;
  const Tiles tiles{.down = static_cast<int>(ceil_div<std::int64_t>(m.rows, side)),
                    .across = static_cast<int>(ceil_div<std::int64_t>(m.columns, side)),
                    .rows = static_cast<int>(m.rows),
                    .columns = static_cast<int>(m.columns),
                    .y = static_cast<Word<4>*>(args.y.data),
                    .y_row = m.y_row,
                    .y_matrix = m.batch.rank == 1 ? m.batch.strides[0][0] : 0};
  launch(context, {.grid = tiles_in(m), .block = threads, .shared_bytes = sizeof(TileBuffer)},
         transpose_tma, make_tensor_map(x_of(args), box, Swizzle::bytes_128), tiles);
}

const Rung<Transpose> self{{.name = "tma",
                            .step = 90,
                            .after = "vectorized",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
