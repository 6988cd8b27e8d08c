// SPDX-License-Identifier: Apache-2.0
// gemm / simt top
//
// Idea     the fastest rung without tensor cores: three tile sizes, selected by shape, up to 16 x 8
//          elements per thread, and a block order that keeps operands in L2.
// Changes  against warp_tile: 128 multiply-adds for 6 shared loads instead of 64 for 4 in 128 x 256
//          tiles for large C; 64 x 128 and 64 x 64 where C is smaller.
// Cost     A is read once per 256 columns, B once per 128 rows; one barrier per 1024 multiply-adds
//          of a thread.
// Limits   the issue rate: 128 of 139 instructions are multiply-adds. An operand that is contiguous
//          along k is copied 4 bytes at a time; two such operands cost 10 %.
// Source   CUTLASS and cuBLAS kernel names for the tile sizes; salykova, "Fast multi-level matrix
//          multiplication on GPU" (sgemm.cu) for 4-byte cp.async that transposes A.
#include <array>

#include "rung/ops/gemm/cuda/detail/simt_top.hpp"
#include "rung/ops/gemm/cuda/detail/warp_epilogue.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

// Tile shapes. A kernel's template argument is an index: nvcc 13 does not accept a struct in its
// name.
constexpr std::array<TileShape, 3> shapes{{{.rows = 128,
                                            .columns = 256,
                                            .steps = 8,
                                            .warp_rows = 64,
                                            .warp_columns = 64,
                                            .thread_rows = 16,
                                            .thread_columns = 8,
                                            .stages = 5,
                                            .blocks = 1},
                                           {.rows = 64,
                                            .columns = 128,
                                            .steps = 16,
                                            .warp_rows = 32,
                                            .warp_columns = 64,
                                            .thread_rows = 8,
                                            .thread_columns = 8,
                                            .stages = 4,
                                            .blocks = 3},
                                           {.rows = 64,
                                            .columns = 64,
                                            .steps = 16,
                                            .warp_rows = 32,
                                            .warp_columns = 64,
                                            .thread_rows = 8,
                                            .thread_columns = 8,
                                            .stages = 4,
                                            .blocks = 6}}};
// Fractions of the multiply-add peak that the shapes reach where C is large (H200).
constexpr std::array<double, 3> fractions{0.79, 0.76, 0.735};
constexpr int raster_rows = 1024;  // rows of C per raster band

/// Position of this block's tile. Blocks start in the order of their indices; bands of a few rows
/// of tiles are traversed by columns, so that concurrent blocks share rows of A and columns of B in
/// L2.
struct TileIndex {
  int row, column;
};
template <TileShape shape>
__device__ TileIndex index_of_tile() {
  constexpr int band = raster_rows / shape.rows;  // tiles
  const int down = static_cast<int>(gridDim.y);
  const int along = static_cast<int>(gridDim.x);
  const std::int64_t number = std::int64_t{blockIdx.y} * along + blockIdx.x;
  const std::int64_t band_tiles = std::int64_t{band} * along;
  const auto first = static_cast<int>(number / band_tiles) * band;
  const int rows = min(band, down - first);
  const auto within = static_cast<int>(number % band_tiles);
  return {first + within % rows, within / rows};
}

template <int Shape, TileAccess access_a, TileAccess access_b>
__global__ void __launch_bounds__(shapes[Shape].threads(), shapes[Shape].blocks)
    gemm_simt_top(Product32 p) {
  constexpr TileShape shape = shapes[Shape];
  using Tile = Pipeline<shape, access_a, access_b>;
  const TileIndex index = index_of_tile<shape>();
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = index.row * shape.rows;
  const int first_column = index.column * shape.columns;
  typename Tile::Sums sums = {};
  Tile::accumulate(operand_a(p, batch), first_row, operand_b(p, batch), first_column, p.k(), sums);
  __syncthreads();  // the epilogue overwrites the tiles
  finish_warp_tile<shape>(p, batch, sums, first_row, first_column);
}

Work work(const Gemm::Args& args, const Context& context) {
  Work work = simt_top_work(args, context);
  work.path = copies_path(args);
  return work;
}

void run(const Gemm::Args& args, Context& context) {
  run_simt_top(context, with_contiguous_c(product<float, float>(args)),
               simt_top_choice(args, context));
}

const Rung<Gemm> self{{.name = "simt_top",
                       .step = 140,
                       .after = "warp_tile",
                       .backend = device_backend,
                       .supports = require_short_strides,
                       // Traffic of the largest tiles, which a large C uses.
                       .tile = {.rows = shapes[0].rows, .columns = shapes[0].columns},
                       .work = work,
                       .run = run}};

}  // namespace

namespace gemm_cuda::inline RUNG_TARGET {

TileChoice simt_top_choice(const Gemm::Args& args, const Context& context) {
  return choose_tile(shapes, fractions, args, context);
}

Work simt_top_work(const Gemm::Args& args, const Context& context) {
  return tile_work(args, context, facts_of(shapes[simt_top_choice(args, context).tile]));
}

void run_simt_top(Context& context, const Product32& p, const TileChoice& choice) {
  Tiling tiling{};
  void (*kernel)(Product32) = nullptr;
  with_access(p, [&]<TileAccess access_a, TileAccess access_b>() {
    const auto choose = [&]<int Shape>() {
      if (choice.tile != Shape) return;
      tiling = tiling_of<shapes[Shape], access_a, access_b>;
      kernel = gemm_simt_top<Shape, access_a, access_b>;
    };
    choose.template operator()<0>();
    choose.template operator()<1>();
    choose.template operator()<2>();
  });
  launch_tiles(context, tiling, kernel, p);
}

}  // namespace gemm_cuda::inline RUNG_TARGET
}  // namespace rung
