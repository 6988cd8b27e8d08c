// SPDX-License-Identifier: Apache-2.0
// gemm / sliced k
//
// Idea     if C has about as many tiles as the device has SMs, a block of few warps hides no
//          latency. Groups of warps split the steps of each tile of k, and each group computes the
//          whole tile of C; shared memory is used to combine their sums (sliced K).
// Changes  against simt_top: eight warps per tile of 32 x 64 to 64 x 128 instead of two or four;
//          against split_k: one launch, and no partial sums in memory.
// Cost     that of a tile of its size; at the end, 4 bytes of shared memory per element and group.
// Limits   simt_top is faster with more than a few tiles per SM, split_k with few tiles and a long
//          k.
// Source   CUTLASS, "Parallelized reductions: sliced K".
#include <array>

#include "rung/ops/gemm/cuda/detail/async.hpp"
#include "rung/ops/gemm/cuda/detail/warp_epilogue.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr std::array<TileShape, 3> shapes{{{.rows = 64,
                                            .columns = 128,
                                            .steps = 16,
                                            .warp_rows = 32,
                                            .warp_columns = 64,
                                            .thread_rows = 8,
                                            .thread_columns = 8,
                                            .stages = 4,
                                            .blocks = 2,
                                            .groups = 2},
                                           {.rows = 64,
                                            .columns = 64,
                                            .steps = 32,
                                            .warp_rows = 32,
                                            .warp_columns = 64,
                                            .thread_rows = 8,
                                            .thread_columns = 8,
                                            .stages = 3,
                                            .blocks = 2,
                                            .groups = 4},
                                           {.rows = 32,
                                            .columns = 64,
                                            .steps = 32,
                                            .warp_rows = 32,
                                            .warp_columns = 32,
                                            .thread_rows = 4,
                                            .thread_columns = 8,
                                            .stages = 4,
                                            .blocks = 2,
                                            .groups = 4}}};
constexpr std::array<double, 3> fractions{0.66, 0.62, 0.53};  // of the peak, with one block per SM

template <int Shape, TileAccess access_a, TileAccess access_b>
__global__ void __launch_bounds__(shapes[Shape].threads(), shapes[Shape].blocks)
    gemm_sliced_k(Product32 p) {
  constexpr TileShape shape = shapes[Shape];
  using Tile = Pipeline<shape, access_a, access_b>;
  const int batch = static_cast<int>(blockIdx.z);
  const int first_row = static_cast<int>(blockIdx.y) * shape.rows;
  const int first_column = static_cast<int>(blockIdx.x) * shape.columns;
  typename Tile::Sums sums = {};
  Tile::accumulate(operand_a(p, batch), first_row, operand_b(p, batch), first_column, p.k(), sums);
  Tile::combine(sums);
  __syncthreads();  // the epilogue overwrites the shared sums
  if (Tile::group_number() != 0) return;
  finish_warp_tile<shape>(p, batch, sums, first_row, first_column);
}

Work work(const Gemm::Args& args, const Context& context) {
  const int tile = choose_tile(shapes, fractions, args, context).tile;
  Work work = tile_work(args, context, facts_of(shapes[tile]));
  work.path = copies_path(args);
  return work;
}

template <int Shape>
void multiply(Context& context, const Product32& p) {
  with_access(p, [&]<TileAccess access_a, TileAccess access_b>() {
    launch_tiles(context, tiling_of<shapes[Shape], access_a, access_b>,
                 gemm_sliced_k<Shape, access_a, access_b>, p);
  });
}

void run(const Gemm::Args& args, Context& context) {
  const Product32 p = with_contiguous_c(product<float, float>(args));
  switch (choose_tile(shapes, fractions, args, context).tile) {
    case 0:
      return multiply<0>(context, p);
    case 1:
      return multiply<1>(context, p);
    default:
      return multiply<2>(context, p);
  }
}

const Rung<Gemm> self{{.name = "sliced_k",
                       .after = "simt_top",
                       .backend = device_backend,
                       .supports = require_short_strides,
                       .tile = {.rows = shapes[1].rows, .columns = shapes[1].columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
