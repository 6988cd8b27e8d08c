// SPDX-License-Identifier: Apache-2.0
// gemm / naive uncoalesced
//
// Idea     one thread computes one element of C by the textbook loop. threadIdx.x is the row, as if
//          C were column-major.
// Changes  baseline.
// Cost     2 k loads per element of C. A warp's 32 threads are in 32 rows: a load of A and a store
//          of C touch 32 sectors of 32 bytes for 4 useful bytes each; a load of B touches 1 sector,
//          the same for all lanes. Loads take 16.5 sectors per request.
// Limits   memory transactions: below 1 % of the arithmetic peak.
// Source   CUDA C++ Programming Guide, "Matrix multiplication", with its axes exchanged.
#include "rung/device/tile/epilogue.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr Tiling tiling{.rows = 32, .columns = 8, .block = {32, 8}, .x_walks_rows = true};

template <class P>
__global__ void gemm_naive_uncoalesced(P p) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t column = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
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
    launch_tiles(context, tiling, gemm_naive_uncoalesced<P>, p);
  });
}

const Rung<Gemm> self{{.name = "naive_uncoalesced",
                       .step = 10,
                       .backend = device_backend,
                       .teaching = true,
                       .supports = require_wide_types,
                       .tile = {.rows = 1, .columns = 1},
                       .run = run}};

}  // namespace
}  // namespace rung
