// SPDX-License-Identifier: Apache-2.0
// reduce / coarsened
//
// Idea     as many blocks as the device holds at once; each thread walks x with a grid stride, four
//          elements per iteration, and accumulates them in registers before any tree.
// Changes  against two_stage_warp: one tree per resident block, not per 512 elements; two launches
//          for any n, since the second pass has one partial sum per resident block.
// Cost     a load and an addition per element. Four loads are in flight at a time.
// Limits   one sum of contiguous f32; the error grows with the elements per thread, so reduce never
//          chooses this rung or the next.
// Source   M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 7 (Brent's theorem).
#include "rung/core/bounds.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

constexpr int unrolled = 4;

using Elements = WarpValues<float, pass_threads>;

__global__ void __launch_bounds__(pass_threads)
    reduce_coarsened(const float* x, std::int64_t n, float* partial) {
  const std::int64_t step = std::int64_t{gridDim.x} * pass_threads;
  float sums[unrolled] = {};
  for (std::int64_t i = std::int64_t{blockIdx.x} * pass_threads + threadIdx.x; i < n;
       i += unrolled * step) {
#pragma unroll
    for (int u = 0; u < unrolled; ++u) {
      if (i + u * step < n) sums[u] += x[i + u * step];
    }
  }
  const float sum =
      block_reduce<pass_threads>((sums[0] + sums[1]) + (sums[2] + sums[3]),
                                 [](float a, float b) { return a + b; }, 0.0F, shared<Elements>());
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 0); }

void run(const Reduce::Args& args, Context& context) {
  const std::int64_t most =
      resident_blocks(context, reduce_coarsened, pass_threads, sizeof(Elements));
  const std::int64_t a_block =
      larger(ceil_div(args.terms.size(), most), std::int64_t{pass_threads} * unrolled);
  run_passes<Elements>(args, context, a_block, reduce_coarsened);
}

const Rung<Reduce> self{{.name = "coarsened",
                         .step = 90,
                         .after = "two_stage_warp",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
