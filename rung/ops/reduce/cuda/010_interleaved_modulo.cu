// SPDX-License-Identifier: Apache-2.0
// reduce / interleaved, by remainder
//
// Idea     a tree: in round s = 1, 2, 4 ... every 2 s-th thread adds the element s further on to
//          its own.
// Changes  baseline. (A loop in a single thread, or an atomic per element, would be slower.)
// Cost     log2(256) rounds through global memory: each addition loads two elements and stores one.
//          Working threads are 2, 4, 8 ... apart: every warp stays active with fewer and fewer
//          lanes (divergence), and from s = 4 on each lane's access touches a sector of its own.
// Limits   one sum of contiguous f32.
// Source   D. Kirk & W. Hwu, Programming Massively Parallel Processors, chapter on reduction;
//          M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 1.
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

__global__ void reduce_interleaved_modulo(const float* in, std::int64_t n, float* copy,
                                          float* partial) {
  const int tid = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * pass_threads + tid;
  float* x = copy + std::int64_t{blockIdx.x} * pass_threads;
  x[tid] = i < n ? in[i] : 0.0F;
  __syncthreads();
  for (int s = 1; s < pass_threads; s *= 2) {
    if (tid % (2 * s) == 0) x[tid] += x[tid + s];
    __syncthreads();
  }
  if (tid == 0) partial[blockIdx.x] = x[0];
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4 * 2.0); }

void run(const Reduce::Args& args, Context& context) {
  run_global_tree(args, context, reduce_interleaved_modulo);
}

const Rung<Reduce> self{{.name = "interleaved_modulo",
                         .step = 10,
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
