// SPDX-License-Identifier: Apache-2.0
// reduce / interleaved, by stride
//
// Idea     the same tree with active threads contiguous: thread tid adds to element 2 * s * tid.
// Changes  against interleaved_modulo: active threads are neighbors. From the second round on whole
//          warps are idle and free their issue slots; the remainder is gone.
// Cost     the same accesses, still 2, 4, 8 ... elements apart.
// Limits   one sum of contiguous f32.
// Source   M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 2.
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

__global__ void reduce_interleaved_strided(const float* in, std::int64_t n, float* copy,
                                           float* partial) {
  const int tid = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * pass_threads + tid;
  float* x = copy + std::int64_t{blockIdx.x} * pass_threads;
  x[tid] = i < n ? in[i] : 0.0F;
  __syncthreads();
  for (int s = 1; s < pass_threads; s *= 2) {
    const int at = 2 * s * tid;
    if (at < pass_threads) x[at] += x[at + s];
    __syncthreads();
  }
  if (tid == 0) partial[blockIdx.x] = x[0];
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4 * 2.0); }

void run(const Reduce::Args& args, Context& context) {
  run_global_tree(args, context, reduce_interleaved_strided);
}

const Rung<Reduce> self{{.name = "interleaved_strided",
                         .step = 20,
                         .after = "interleaved_modulo",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
