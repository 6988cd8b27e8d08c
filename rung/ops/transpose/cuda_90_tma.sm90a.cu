// SPDX-License-Identifier: Apache-2.0
// transpose / tma
//
// Idea     the copy engine of compute capability 9.0 fetches and stores whole tiles: one thread
//          asks for a box, edges are cut by hardware, and the swizzle that keeps columns free of
//          bank conflicts is applied on the way. Threads only turn 4 x 4 elements at a time, from
//          one box in shared memory to another. Blocks stay, and go from tile to tile: while one is
//          turned, the next two are being fetched and the last is being stored.
// Changes  against vectorised: no addresses, no bounds, no registers to wait in; 48 KiB a block are
//          under way whatever the threads do.
// Cost     4 shared loads and 4 shared stores of 16 bytes for 64 bytes.
// Limits   4-byte elements; rows that begin at multiples of 16 bytes, in x and in y; one batch
//          axis.
// Tried    -
// Source   CUDA C++ Programming Guide, "Tensor memory access"; PTX ISA, cp.async.bulk.tensor.
#include "rung/device/ptx_tensor_copy.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/transpose/cuda_chunk.hpp"
#include "rung/ops/transpose/cuda_matrices.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

struct Tuning {
  int side;     // of a tile: two boxes of half its width, each 128 bytes wide
  int stages;   // tiles of x in shared memory
  int threads;  // one for 4 x 4 elements
};
constexpr Tuning tuning{.side = 64, .stages = 3, .threads = 256};
constexpr int side = tuning.side;
constexpr int box_columns = 32;
constexpr int box_bytes = side * box_columns * 4;

struct Tile {
  alignas(1024) Byte boxes[2][box_bytes];  // a box is the left or the right half
};
struct Ring {
  Tile in[tuning.stages];
  Tile out[2];
  ptx::MemoryBarrier full[tuning.stages];
};

/// 16 bytes of a box: chunk 0 to 7 of a row.
__device__ __forceinline__ Byte* chunk_at(Byte* box, int row, int chunk) {
  return box + swizzled<Swizzle::bytes_128>(row * 128 + chunk * chunk_bytes);
}

/// Each thread turns 4 x 4 elements. The eight lanes that access shared memory together take chunk
/// l of rows 4 (l xor k): eight different chunks of a line, swizzled, where they read and again
/// where they write.
__device__ __forceinline__ void turn(Tile& in, Tile& out) {
  const int thread = static_cast<int>(threadIdx.x);
  const int across = thread % 8;               // chunk of x's row in its box
  const int down = across ^ (thread / 8 % 8);  // chunk of y's row in its box
  const int lower = thread / 64 % 2;           // which of y's boxes
  const int right = thread / 128;              // which of x's boxes
  Chunk rows[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    rows[i] = load_aligned(chunk_at(in.boxes[right], 32 * lower + 4 * down + i, across));
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const Chunk column{{rows[0][j], rows[1][j], rows[2][j], rows[3][j]}};
    store_aligned(chunk_at(out.boxes[lower], 32 * right + 4 * across + j, down), column);
  }
}

/// Tiles of all matrices, numbered along rows of x.
struct Tiles {
  int down, across, count;
  struct Place {
    int matrix, row, column;
  };
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Place place(int tile) const {
    return {tile / (down * across), tile / across % down * side, tile % across * side};
  }
};

__global__ void __launch_bounds__(tuning.threads)
    transpose_tma(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap y,
                  Tiles tiles) {
  Ring& ring = shared<Ring>();
  const bool leader = threadIdx.x == 0;
  const auto tile_of = [](int n) {
    return static_cast<int>(blockIdx.x) + n * static_cast<int>(gridDim.x);
  };
  const auto fetch = [&](int n) {
    if (tile_of(n) >= tiles.count) return;
    const Tiles::Place at = tiles.place(tile_of(n));
    ptx::MemoryBarrier& full = ring.full[n % tuning.stages];
    ptx::mbarrier_arrive_expect(full, sizeof(Tile));
    for (int half = 0; half < 2; ++half) {
      ptx::tensor_load(ring.in[n % tuning.stages].boxes[half], x,
                       {at.matrix, at.row, at.column + half * box_columns}, full);
    }
  };
  if (leader) {
    for (ptx::MemoryBarrier& full : ring.full) ptx::mbarrier_init(full, 1);
    ptx::mbarrier_fence_init();
    for (int n = 0; n < tuning.stages; ++n) fetch(n);
  }
  __syncthreads();
  for (int n = 0; tile_of(n) < tiles.count; ++n) {
    const int stage = n % tuning.stages;
    // Of the two stores that may be under way, the older read what is about to be overwritten.
    if (leader) ptx::bulk_wait_read<1>();
    __syncthreads();
    ptx::mbarrier_wait(ring.full[stage], static_cast<unsigned>(n / tuning.stages % 2));
    Tile& out = ring.out[n % 2];
    turn(ring.in[stage], out);
    ptx::fence_async_proxy();
    __syncthreads();
    if (leader) {
      const Tiles::Place at = tiles.place(tile_of(n));
      for (int half = 0; half < 2; ++half) {
        ptx::tensor_store(y, {at.matrix, at.column, at.row + half * box_columns}, out.boxes[half]);
      }
      ptx::bulk_commit();
      fetch(n + tuning.stages);  // everybody has read this stage
    }
  }
  if (leader) ptx::bulk_wait_read<0>();
}

constexpr int box[] = {1, side, box_columns};

template <class T>
View<T, 3> view_of(T* data, const Moves& m, int tensor) {
  const bool is_x = tensor == 1;
  const bool batched = m.batch.rank == 1;
  View<T, 3> view;
  view.data = data;
  view.shape[0] = m.matrices();
  view.shape[1] = is_x ? m.rows : m.columns;
  view.shape[2] = is_x ? m.columns : m.rows;
  view.strides[0] = batched ? m.batch.strides[tensor][0] : 0;
  view.strides[1] = is_x ? m.x_row : m.y_row;
  view.strides[2] = 1;
  return view;
}
// Whole numbers, so that no NaN is touched.
View<const std::int32_t, 3> x_of(const Transpose::Args& args) {
  return view_of(static_cast<const std::int32_t*>(args.x.data), args.moves, 1);
}
View<std::int32_t, 3> y_of(const Transpose::Args& args) {
  return view_of(static_cast<std::int32_t*>(args.y.data), args.moves, 0);
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
  constexpr std::int64_t most = std::int64_t{1} << 30;  // a block may look so far beyond the last
  if (m.rows > most || m.columns > most || tiles_in(m) > most) {
    return unsupported("more than 2^30 rows, columns or tiles");
  }
  if (const Support x = tensor_map_support(x_of(args), box, Swizzle::bytes_128); !x) return x;
  return tensor_map_support(y_of(args), box, Swizzle::bytes_128);
}

double estimate(const Transpose::Args& args, const Context& context) {
  return tiled_seconds(args, context, {.rows = side, .columns = side, .block = tuning.threads},
                       0.97);
}

void run(const Transpose::Args& args, Context& context) {
  const Moves& m = args.moves;
  if (m.empty()) return;
  const Tiles tiles{static_cast<int>(ceil_div<std::int64_t>(m.rows, side)),
                    static_cast<int>(ceil_div<std::int64_t>(m.columns, side)),
                    static_cast<int>(tiles_in(m))};
  const std::int64_t blocks = resident_blocks(context, transpose_tma, tuning.threads, sizeof(Ring));
  launch(context,
         {.grid = std::min<std::int64_t>(blocks, tiles.count),
          .block = tuning.threads,
          .shared_bytes = sizeof(Ring)},
         transpose_tma, make_tensor_map(x_of(args), box, Swizzle::bytes_128),
         make_tensor_map(y_of(args), box, Swizzle::bytes_128), tiles);
}

const Rung<Transpose> self{{.name = "tma",
                            .step = 90,
                            .after = "vectorised",
                            .backend = device_backend,
                            .supports = supports,
                            .estimate = estimate,
                            .run = run}};

}  // namespace
}  // namespace rung
