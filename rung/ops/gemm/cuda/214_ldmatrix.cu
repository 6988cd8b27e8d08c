// SPDX-License-Identifier: Apache-2.0
// gemm / ldmatrix
//
// Idea     one ldmatrix instruction loads four 8 x 8 matrices of 16-bit elements, each lane passing
//          the address of one row of 16 bytes; with .trans it transposes them while loading.
// Changes  against vector_copies: 6 loads of fragments per 16 mma instructions instead of 24; B's
//          tile keeps its layout in global memory, so it is stored 16 bytes at a time without
//          conflicts.
// Cost     the same global-memory traffic. Rows are padded by 16 bytes, which puts the eight rows
//          of a matrix in eight different groups of four banks.
// Limits   as vector_copies. The tensor cores wait while the next tile is copied.
// Source   PTX ISA, "ldmatrix" and "Matrix fragments for mma.m16n8k16".
#include "rung/device/load.hpp"
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

template <class T>
struct Tiles {
  alignas(16) T a[tile_rows][depth + width];
  alignas(16) T b[depth][tile_columns + width];
};
template <class T>
union Layout {
  Tiles<T> tiles;
  StripStage stages[threads / 32];
};

template <class P>
__global__ void __launch_bounds__(threads) gemm_ldmatrix(P p) {
  using T = typename P::In;
  auto& layout = shared<Layout<T>>();
  Tiles<T>& tiles = layout.tiles;
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
  for (std::int64_t k = 0; k < p.k(); k += depth) {
#pragma unroll
    for (int part = 0; part < tile_rows * depth / width / threads; ++part) {
      const int i = thread + part * threads;
      const int row = i / (depth / width);
      const int step = i % (depth / width) * width;
      const std::int64_t valid = first_row + row < p.m() ? p.k() - k - step : 0;
      store_wide(&tiles.a[row][step], load_wide<width>(&a(first_row + row, k + step), valid));
    }
#pragma unroll
    for (int part = 0; part < depth * tile_columns / width / threads; ++part) {
      const int i = thread + part * threads;
      const int step = i / (tile_columns / width);
      const int column = i % (tile_columns / width) * width;
      const std::int64_t valid = k + step < p.k() ? p.n() - first_column - column : 0;
      store_wide(&tiles.b[step][column],
                 load_wide<width>(&b(k + step, first_column + column), valid));
    }
    __syncthreads();
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
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < down; ++i) {
    finish_strip<warp_columns>(p, layout.stages[warp], batch, first_row + warp_row + 16 * i,
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
        ? launch_tiles(context, tiling, gemm_ldmatrix<Product<T, float>>, product<T, float>(args))
        : launch_tiles(context, tiling, gemm_ldmatrix<Product<T, T>>, product<T, T>(args));
  });
}

const Rung<Gemm> self{{.name = "ldmatrix",
                       .step = 214,
                       .after = "vector_copies",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_aligned_16_bit_rows,
                       .tile = {.rows = tile_rows, .columns = tile_columns},
                       .run = run}};

}  // namespace
}  // namespace rung
