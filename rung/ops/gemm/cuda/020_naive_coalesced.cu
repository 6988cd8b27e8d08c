// SPDX-License-Identifier: Apache-2.0
// gemm / naive coalesced
//
// Idea     one thread computes one element of C; threadIdx.x is the column.
// Changes  against naive_uncoalesced: the two axes of the block are exchanged, nothing else. A warp
//          loads one element of A (1 sector, a broadcast) and 32 adjacent ones of B, and stores 32
//          adjacent ones of C (4 sectors of 32 bytes, fully used): coalesced. The mean of the loads
//          is 2.5 sectors per request.
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
constexpr Speed speed{.peak = 0.08, .rows = 1, .columns = 1};

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

/// No tile is shared: every element of C reads its row of A and its column of B.
void run(const Gemm::Args& args, Context& context) {
  with_product(args, [&]<class P>(const P& p) {
    launch_tiles(context, tiling, gemm_naive_coalesced<P>, p);
  });
}

/// Blocks take some 100 cycles of their SM and 150 more where all rows exist, and each step of k a
/// share of one per element; but however few there are, a thread waits for two loads at each step:
/// from L1, seven times of eight, where k is contiguous in both operands, else from memory. Both
/// are overlapped with those of a few more steps. Measured on an H100.
double estimate(const Gemm::Args& args, const Context& context) {
  const auto along_k = [](std::int64_t extent, std::int64_t stride) {
    return extent <= 1 || stride == 1;
  };
  const bool near = along_k(args.k(), args.a.strides[2]) && along_k(args.k(), args.b.strides[1]);
  const double latency = args.a.dtype == DType::f32   ? (near ? 35e-9 : 100e-9)
                         : args.a.dtype == DType::f64 ? 75e-9
                                                      : 95e-9;
  const bool narrow = size_of(args.a.dtype) == 2;
  // Lanes are along n: where that is not contiguous, each reads a sector of its own.
  const double apart = narrow || args.n() <= 1 || args.b.strides[2] == 1 ? 1 : 4;
  const double step_cycles = apart * (narrow ? 0.23 : 0.15);
  const double k = args.alpha == 0 ? 0.0 : static_cast<double>(args.k());
  const double along = static_cast<double>(tiles_of(args.n(), tiling.columns) * args.batch());
  const double blocks = static_cast<double>(tiles_of(args.m(), tiling.rows)) * along;
  const double rows = static_cast<double>(args.m()) * along;  // of 32 elements
  const double cycles =
      100 * blocks + rows * (150.0 / tiling.rows + step_cycles * k * tiling.columns);
  const double work = cycles * 256 / nominal_rates(context).operations_per_second;
  const double memory = Gemm::cost(args).bytes / nominal_rates(context).bytes_per_second;
  return launch_seconds + std::max({work, memory, k * latency});
}

const Rung<Gemm> self{{.name = "naive_coalesced",
                       .step = 20,
                       .after = "naive_uncoalesced",
                       .backend = device_backend,
                       .supports = require_wide_types,
                       .speed = speed,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
