// SPDX-License-Identifier: Apache-2.0
// gemm / warp tile
//
// Idea     a level between block and thread: each warp owns a 64 x 32 part of the 128 x 128 tile,
//          its lanes an 8 x 4 arrangement of 8 x 8 elements.
// Changes  against async_copy: a warp reads 64 + 32 different words per step instead of 8 + 128,
//          and the fragments of the next step are read while this one's are multiplied (two sets of
//          registers), across the border between tiles too.
// Cost     the same bytes from global memory, less from shared memory.
// Limits   64 multiply-adds for 4 shared loads: one instruction in sixteen does not compute.
// Source   CUTLASS, "Efficient GEMM in CUDA": thread-block, warp and thread tiles.
#include "rung/ops/gemm/cuda/detail/async.hpp"
#include "rung/ops/gemm/cuda/detail/epilogue.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr TileShape shape{.rows = 128,
                          .columns = 128,
                          .steps = 8,
                          .warp_rows = 64,
                          .warp_columns = 32,
                          .thread_rows = 8,
                          .thread_columns = 8,
                          .stages = 4,
                          .blocks = 2};
constexpr Speed speed = tile_speed(shape, 0.72);

template <Access access_a, Access access_b>
__global__ void __launch_bounds__(shape.threads(), shape.blocks) gemm_warp_tile(Product32 p) {
  using Tile = Pipeline<shape, access_a, access_b>;
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * shape.rows;
  const int first_column = static_cast<int>(blockIdx.x) * shape.columns;
  typename Tile::Sums sums = {};
  Tile::accumulate(operand_a(p, batch), first_row, operand_b(p, batch), first_column, p.k(), sums);
  finish_tile<Tile::group>(
      p, batch, sums, [&](int i) { return first_row + Tile::row(i); },
      [&](int j) { return first_column + Tile::column(j); });
}

double estimate(const Gemm::Args& args, const Context& context) {
  return tile_seconds(speed, args, context) * copy_factor(args);
}

void run(const Gemm::Args& args, Context& context) {
  const Product32 p = with_contiguous_c(product<float, float>(args));
  with_access(p, [&]<Access access_a, Access access_b>() {
    launch_tiles(context, tiling_of<shape, access_a, access_b>, gemm_warp_tile<access_a, access_b>,
                 p);
  });
}

const Rung<Gemm> self{{.name = "warp_tile",
                       .step = 120,
                       .after = "async_copy",
                       .backend = device_backend,
                       .supports = require_short_strides,
                       .speed = speed,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
