// SPDX-License-Identifier: Apache-2.0
// gemm / async ring
//
// Idea     a ring of four tiles in shared memory, filled by cp.async three tiles ahead: copies of
//          later tiles overlap with the products of the current one (software pipelining).
// Changes  against ldmatrix: copies to shared memory bypass registers, and three tiles of products
//          hide the global-memory latency; one barrier per tile instead of two.
// Cost     the same global-memory traffic; 76 KB of shared memory per block.
// Limits   as ldmatrix: aligned rows. Padding takes shared memory that swizzling would save; warps
//          of 64 x 32 load more fragments per product than warps of 64 x 64.
// Source   CUDA C++ Programming Guide, "Asynchronous data copies"; PTX ISA, cp.async.
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/device/tile/strip.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int tile_rows = 128, tile_columns = 128, depth = 32;
constexpr int warp_rows = 64, warp_columns = 32;
constexpr int warps_along = tile_columns / warp_columns;
constexpr int threads = 32 * (tile_rows / warp_rows) * warps_along;
constexpr int width = 8;  // elements in 16 bytes
constexpr int stages = 4;

template <class T>
struct Tiles {
  alignas(16) T a[tile_rows][depth + width];
  alignas(16) T b[depth][tile_columns + width];
};
template <class T>
union Layout {
  Tiles<T> ring[stages];
  StripStage strips[threads / 32];
};

template <class P>
__global__ void __launch_bounds__(threads, 2) gemm_async_ring(P p) {
  using T = typename P::In;
  auto& layout = shared<Layout<T>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tile_rows;
  const int first_column = static_cast<int>(blockIdx.x) * tile_columns;
  const int warp_row = warp / warps_along * warp_rows;
  const int warp_column = warp % warps_along * warp_columns;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);

  constexpr int down = warp_rows / 16;
  constexpr int along = warp_columns / 8;
  float sums[down][along][4] = {};

  /// Starts the copies of a tile and commits their group; beyond the last tile the group is empty,
  /// so that the number of groups in flight is constant.
  const auto copy = [&](int tile) {
    Tiles<T>& to = layout.ring[tile % stages];
    const std::int64_t k = std::int64_t{tile} * depth;
    const auto bytes = [](std::int64_t valid) {
      return static_cast<int>(larger<std::int64_t>(smaller<std::int64_t>(valid, width), 0) *
                              static_cast<int>(sizeof(T)));
    };
    if (k < p.k()) {
#pragma unroll
      for (int part = 0; part < tile_rows * depth / width / threads; ++part) {
        const int i = thread + part * threads;
        const int row = i / (depth / width);
        const int step = i % (depth / width) * width;
        const int valid = first_row + row < p.m() ? bytes(p.k() - k - step) : 0;
        ptx::async_copy<16>(&to.a[row][step], valid == 0 ? a.data : &a(first_row + row, k + step),
                            valid);
      }
#pragma unroll
      for (int part = 0; part < depth * tile_columns / width / threads; ++part) {
        const int i = thread + part * threads;
        const int step = i / (tile_columns / width);
        const int column = i % (tile_columns / width) * width;
        const int valid = k + step < p.k() ? bytes(p.n() - first_column - column) : 0;
        ptx::async_copy<16>(&to.b[step][column],
                            valid == 0 ? b.data : &b(k + step, first_column + column), valid);
      }
    }
    ptx::async_commit();
  };
  for (int tile = 0; tile < stages - 1; ++tile) copy(tile);

  const auto count = static_cast<int>(tiles_of(p.k(), depth));
  for (int tile = 0; tile < count; ++tile) {
    ptx::async_wait<stages - 2>();
    __syncthreads();  // the tile has arrived for all, and all have read the overwritten one
    copy(tile + stages - 1);
    const Tiles<T>& tiles = layout.ring[tile % stages];
#pragma unroll
    for (int step = 0; step < depth; step += 16) {
      // Lanes 0 to 15 address the 16 rows of the left half, lanes 16 to 31 those of the right half.
      std::uint32_t b_fragments[along / 2][4];
#pragma unroll
      for (int j = 0; j < along / 2; ++j) {
        ptx::load_matrix<4, true>(
            b_fragments[j], &tiles.b[step + lane % 16][warp_column + 16 * j + lane / 16 * width]);
      }
#pragma unroll
      for (int i = 0; i < down; ++i) {
        std::uint32_t a_fragment[4];
        ptx::load_matrix<4>(a_fragment,
                            &tiles.a[warp_row + 16 * i + lane % 16][step + lane / 16 * width]);
#pragma unroll
        for (int j = 0; j < along; ++j) {
          const auto& of_16_columns = b_fragments[j / 2];
          ptx::mma<T>(sums[i][j], a_fragment,
                      {of_16_columns[j % 2 * 2], of_16_columns[j % 2 * 2 + 1]});
        }
      }
    }
  }
  ptx::async_wait_all();
  __syncthreads();  // the strips reuse the ring's memory

#pragma unroll
  for (int i = 0; i < down; ++i) {
    finish_strip<warp_columns>(p, layout.strips[warp], batch, first_row + warp_row + 16 * i,
                               first_column + warp_column,
                               [&](int at) { return sums[i][at / 4][at % 4]; });
  }
}

void run(const Gemm::Args& args, Context& context) {
  visit<f16, bf16>(args.a.dtype, [&]<class T>() {
    const Tiling tiling{.rows = tile_rows,
                        .columns = tile_columns,
                        .block = threads,
                        .shared_bytes = sizeof(Layout<T>)};
    args.c.dtype == DType::f32
        ? launch_tiles(context, tiling, gemm_async_ring<Product<T, float>>, product<T, float>(args))
        : launch_tiles(context, tiling, gemm_async_ring<Product<T, T>>, product<T, T>(args));
  });
}

const Rung<Gemm> self{{.name = "async_ring",
                       .step = 216,
                       .after = "ldmatrix",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_aligned_16_bit_rows,
                       .tile = {.rows = tile_rows, .columns = tile_columns},
                       .run = run}};

}  // namespace
}  // namespace rung
