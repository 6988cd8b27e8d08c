// SPDX-License-Identifier: Apache-2.0
// gemm / vector copies
//
// Idea     mma_sync with tiles copied 16 bytes at a time: eight elements of a row per instruction.
// Changes  against mma_sync: an eighth of the loads, addresses and bounds checks, and no conversion
//          to f32 and back: 16-bit elements are copied unchanged.
// Cost     the same global-memory traffic. B's tile is stored transposed, element by element: the
//          16 lanes that copy one row of B write to one bank (16-way conflicts).
// Limits   f16 and bf16, rows of A and B contiguous and aligned to 16 bytes. The bank conflicts of
//          B, and tensor cores that wait for each copy.
// Source   Luitjens, "CUDA Pro Tip: Increase performance with vectorized memory access", 2013.
#include "rung/device/load.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/device/tile/strip.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int tile_rows = 128, tile_columns = 128, depth = 32;
constexpr int warp_rows = 64, warp_columns = 32;
constexpr int warps_along = tile_columns / warp_columns;
constexpr int threads = 32 * (tile_rows / warp_rows) * warps_along;
constexpr int width = 8;   // elements in 16 bytes
constexpr int pitch = 40;  // of a row, in elements: free of bank conflicts, as in mma_sync

template <class T>
struct Tiles {
  alignas(16) T a[tile_rows][pitch];
  alignas(16) T b[tile_columns][pitch];  // transposed: k along the rows
};
template <class T>
union Layout {
  Tiles<T> tiles;
  StripStage stages[threads / 32];
};

template <class P>
__global__ void __launch_bounds__(threads) gemm_vector_copies(P p) {
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
      const auto values = load_wide<width>(&b(k + step, first_column + column), valid);
#pragma unroll
      for (int j = 0; j < width; ++j) tiles.b[column + j][step] = values[j];
    }
    __syncthreads();
#pragma unroll
    for (int first = 0; first < depth / 2; first += 8) {  // words of two elements
      const int at = first + lane % 4;
      std::uint32_t b_words[along][2];
#pragma unroll
      for (int j = 0; j < along; ++j) {
        const auto& column = tiles.b[warp_column + 8 * j + lane / 4];
        b_words[j][0] = word(column, at);
        b_words[j][1] = word(column, at + 4);
      }
#pragma unroll
      for (int i = 0; i < down; ++i) {
        const auto& upper = tiles.a[warp_row + 16 * i + lane / 4];
        const auto& lower = tiles.a[warp_row + 16 * i + lane / 4 + 8];
        const std::uint32_t a_words[4] = {word(upper, at), word(lower, at), word(upper, at + 4),
                                          word(lower, at + 4)};
#pragma unroll
        for (int j = 0; j < along; ++j) ptx::mma<T>(sums[i][j], a_words, b_words[j]);
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
        ? launch_tiles(context, tiling, gemm_vector_copies<Product<T, float>>,
                       product<T, float>(args))
        : launch_tiles(context, tiling, gemm_vector_copies<Product<T, T>>, product<T, T>(args));
  });
}

const Rung<Gemm> self{{.name = "vector_copies",
                       .step = 212,
                       .after = "mma_sync",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_aligned_16_bit_rows,
                       .tile = {.rows = tile_rows, .columns = tile_columns},
                       .run = run}};

}  // namespace
}  // namespace rung
