// SPDX-License-Identifier: Apache-2.0
// gemm / naive coalesced
//
// Idea     one thread computes one element of C; threadIdx.x is the column.
// Changes  against naive_uncoalesced: only the two axes of the block are exchanged. A warp loads
//          one element of A (1 sector, a broadcast) and 32 adjacent elements of B, and stores 32
//          adjacent elements of C (4 fully used sectors of 32 bytes): coalesced. Loads take
//          2.5 sectors per request.
// Cost     still 2 k loads per element of C, 2 loads per multiply-add; the caches serve most of
//          them.
// Limits   load instructions: one multiply-add in three instructions at best. The general rung: any
//          types and strides, any size.
// Source   CUDA C++ Programming Guide, "Matrix multiplication" without shared memory.
#include <algorithm>

#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr Tiling tiling{.rows = 8, .columns = 32, .block = {32, 8}};
constexpr TileExtents tile_extents{.rows = 1, .columns = 1};

template <class P>
__global__ void gemm_naive_coalesced(P p) {
  const std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= p.m() || column >= p.n()) return;
  using Sum = typename P::Sum;
  const auto a = p.a.at(blockIdx.z);
  const auto b = p.b.at(blockIdx.z);
  Sum sum = 0;
  for (std::int64_t k = 0; k < p.k(); ++k) {
    sum += convert<Sum>(a(row, k)) * convert<Sum>(b(k, column));
  }
  finish(p, static_cast<int>(blockIdx.z), row, column, sum);
}

/// Launches over C. No operand tile is shared: every element of C reads its row of A and its column
/// of B.
void run(const Gemm::Args& args, Context& context) {
  with_product(args, [&]<class P>(const P& p) {
    launch_tiles(context, tiling, gemm_naive_coalesced<P>, p);
  });
}

/// Returns the work. A thread waits for two loads per step of k; where k is contiguous in an
/// operand, most of its loads hit L1. If B's rows are not contiguous, each lane reads a sector.
Work work(const Gemm::Args& args, const Context& context) {
  const auto along_k = [](std::int64_t extent, std::int64_t stride) {
    return extent <= 1 || stride == 1;
  };
  const bool a_near = along_k(args.k(), args.a.strides[2]);
  const bool near = a_near && along_k(args.k(), args.b.strides[1]);
  const bool apart = args.n() > 1 && args.b.strides[2] != 1;
  const std::int64_t k = args.alpha == 0 ? 0 : args.k();
  const double blocks = static_cast<double>(tiles_of(args.m(), tiling.rows) *
                                            tiles_of(args.n(), tiling.columns) * args.batch());
  return {.blocks = blocks,
          .resident = 8,
          .rounds = k,
          .steps = unevenness(blocks, context) *
                   static_cast<double>(k * std::min<std::int64_t>(args.m(), tiling.rows)),
          .path = args.a.dtype == DType::f64 ? "f64"
                  : near                     ? "lines along k"
                  : apart                    ? "lanes apart"
                  : !a_near                  ? "A across k"
                                             : ""};
}

const Rung<Gemm> self{{.name = "naive_coalesced",
                       .step = 20,
                       .after = "naive_uncoalesced",
                       .backend = device_backend,
                       .supports = require_wide_types,
                       .tile = tile_extents,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
