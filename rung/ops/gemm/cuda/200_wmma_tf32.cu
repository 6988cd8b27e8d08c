// SPDX-License-Identifier: Apache-2.0
// gemm / wmma
//
// Idea     tensor cores through the CUDA C++ WMMA API: a warp multiplies 16 x 16 matrices as a
//          whole. f32 operands are rounded to tf32 (8 bits of exponent, 10 of mantissa) on their
//          way to shared memory; f16 and bf16 are copied unchanged. Sums are f32.
// Changes  against simt_top: one warp instruction performs 2048 or 4096 multiply-adds. Tiles are
//          copied to shared memory as simply as in register_tile_2d.
// Cost     the traffic of 128 x 128 tiles; f32 results good to about 10 bits.
// Limits   copies: the tensor cores wait while the next tile is fetched element by element.
// Source   CUDA C++ Programming Guide, "Warp matrix functions".
#include <type_traits>

#include "rung/device/tile/epilogue.hpp"
#include "rung/device/wmma.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

struct Tuning {
  int rows, columns, steps;
  int warp_rows, warp_columns;
  [[nodiscard]] constexpr int warps_along() const { return columns / warp_columns; }
  [[nodiscard]] constexpr int warps() const { return rows / warp_rows * warps_along(); }
  [[nodiscard]] constexpr int threads() const { return 32 * warps(); }
};
constexpr Tuning tuning{
    .rows = 128, .columns = 128, .steps = 16, .warp_rows = 32, .warp_columns = 64};
constexpr int edge = 16;  // rows and columns of a fragment of C

/// Depth of the WMMA fragments of T, and the API's name of their element type.
template <class T>
struct Fragments {
  static constexpr bool is_float = std::is_same_v<T, float>;
  static constexpr int depth = is_float ? 8 : 16;
  using Element = std::conditional_t<is_float, wmma::precision::tf32, wmma::element<T>>;
  using A = wmma::fragment<wmma::matrix_a, edge, edge, depth, Element, wmma::row_major>;
  using B = wmma::fragment<wmma::matrix_b, edge, edge, depth, Element, wmma::row_major>;
  using Sum = wmma::fragment<wmma::accumulator, edge, edge, depth, float>;
};

/// Tiles of A and B. Rows are padded by 16 bytes, the least that wmma allows, so that they start in
/// different banks.
template <class T>
struct Tiles {
  static constexpr int padding = vector_width<T>;
  alignas(32) T a[tuning.rows][tuning.steps + padding];
  alignas(32) T b[tuning.steps][tuning.columns + padding];
};
/// Staging buffer between fragments, whose layout is opaque, and C: one part per warp.
struct Sums {
  alignas(32) float warp[tuning.warps()][tuning.warp_rows][tuning.warp_columns + 4];
};
/// Shared memory of a block. The sums reuse the tiles' memory: no thread reads a tile after the
/// last barrier of the main loop.
template <class T>
union Layout {
  Tiles<T> tiles;
  Sums sums;
};

/// Rounds an f32 to tf32: the tensor core would truncate it to 10 bits, and rounding halves the
/// error.
template <class T>
__device__ T rounded(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return wmma::to_tf32(value);
  } else {
    return convert<T>(value);
  }
}

template <class P>
__global__ void __launch_bounds__(tuning.threads(), 2) gemm_wmma_tf32(P p) {
  using T = typename P::In;
  using Fragment = Fragments<T>;
  auto& layout = shared<Layout<T>>();
  Tiles<T>& tiles = layout.tiles;
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * tuning.rows;
  const int first_column = static_cast<int>(blockIdx.x) * tuning.columns;
  const int warp = thread_index() / 32;
  const int warp_row = warp / tuning.warps_along() * tuning.warp_rows;
  const int warp_column = warp % tuning.warps_along() * tuning.warp_columns;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);

  constexpr int down = tuning.warp_rows / edge;
  constexpr int along = tuning.warp_columns / edge;
  typename Fragment::Sum sums[down][along];
  for (auto& row : sums) {
    for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
  }
  for (std::int64_t k = 0; k < p.k(); k += tuning.steps) {
    load_tile<tuning.rows, tuning.steps, tuning.threads()>(
        a, first_row, k, [&](int row, int step, float v) { tiles.a[row][step] = rounded<T>(v); });
    load_tile<tuning.steps, tuning.columns, tuning.threads()>(
        b, k, first_column, [&](int step, int c, float v) { tiles.b[step][c] = rounded<T>(v); });
    __syncthreads();
#pragma unroll
    for (int step = 0; step < tuning.steps; step += Fragment::depth) {
      typename Fragment::A a_fragments[down];
      for (int i = 0; i < down; ++i) {
        wmma::load_matrix_sync(a_fragments[i], wmma::native(&tiles.a[warp_row + i * edge][step]),
                               sizeof(tiles.a[0]) / sizeof(T));
      }
      // One column of B's fragments at a time: each fragment is loaded once for `down` products.
      for (int j = 0; j < along; ++j) {
        typename Fragment::B b_fragment;
        wmma::load_matrix_sync(b_fragment, wmma::native(&tiles.b[step][warp_column + j * edge]),
                               sizeof(tiles.b[0]) / sizeof(T));
        for (int i = 0; i < down; ++i) {
          wmma::mma_sync(sums[i][j], a_fragments[i], b_fragment, sums[i][j]);
        }
      }
    }
    __syncthreads();
  }

  // Sums pass through shared memory, because the epilogue needs each element's position.
  auto& mine = layout.sums.warp[warp];
  for (int i = 0; i < down; ++i) {
    for (int j = 0; j < along; ++j) {
      wmma::store_matrix_sync(&mine[i * edge][j * edge], sums[i][j],
                              sizeof(mine[0]) / sizeof(float), wmma::mem_row_major);
    }
  }
  __syncwarp();
#pragma unroll 1
  for (int at = thread_index() % 32; at < tuning.warp_rows * tuning.warp_columns; at += 32) {
    const int i = at / tuning.warp_columns;
    const int j = at % tuning.warp_columns;
    const std::int64_t row = first_row + warp_row + i;
    const std::int64_t column = first_column + warp_column + j;
    if (row < p.m() && column < p.n()) finish(p, batch, row, column, mine[i][j]);
  }
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.a.dtype == DType::f64 || args.has_bytes()) {
    return unsupported("this rung multiplies f32, f16 and bf16");
  }
  if (args.a.dtype == DType::f32 && args.precision != Precision::tf32) {
    return unsupported("f32 operands would be rounded to tf32, which needs Precision::tf32");
  }
  return supported;
}

template <class T, class Out>
void launch_wmma(const Gemm::Args& args, Context& context) {
  launch_tiles(context,
               {.rows = tuning.rows,
                .columns = tuning.columns,
                .block = tuning.threads(),
                .shared_bytes = sizeof(Layout<T>)},
               gemm_wmma_tf32<Product<T, Out>>, product<T, Out>(args));
}

void run(const Gemm::Args& args, Context& context) {
  visit<float, f16, bf16>(args.a.dtype, [&]<class T>() {
    args.c.dtype == DType::f32 ? launch_wmma<T, float>(args, context)
                               : launch_wmma<T, T>(args, context);
  });
}

Work work(const Gemm::Args& args, const Context& context) {
  return tile_work(
      args, context,
      {.rows = tuning.rows, .columns = tuning.columns, .depth = tuning.steps, .resident = 2}, true);
}

const Rung<Gemm> self{{.name = "wmma_tf32",
                       .step = 200,
                       .after = "simt_top",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = tuning.rows, .columns = tuning.columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
