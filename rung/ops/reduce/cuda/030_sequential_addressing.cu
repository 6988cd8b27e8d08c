// SPDX-License-Identifier: Apache-2.0
// reduce / sequential addressing
//
// Idea     the tree with strides in descending order: the upper half of the elements is added to
//          the lower half, then the upper quarter to the lower, until one element is left.
// Changes  against interleaved_strided: neighboring threads access neighboring elements in every
//          round, so that a warp's access touches one line instead of up to 32.
// Cost     the same additions, a fraction of the sectors.
// Limits   one sum of contiguous f32.
// Source   M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 3.
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

__global__ void reduce_sequential_addressing(const float* in, std::int64_t n, float* copy,
                                             float* partial) {
  const int tid = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * pass_threads + tid;
  float* x = copy + std::int64_t{blockIdx.x} * pass_threads;
  x[tid] = i < n ? in[i] : 0.0F;
  __syncthreads();
  for (int s = pass_threads / 2; s > 0; s /= 2) {
    if (tid < s) x[tid] += x[tid + s];
    __syncthreads();
  }
  if (tid == 0) partial[blockIdx.x] = x[0];
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4 * 2.0); }

void run(const Reduce::Args& args, Context& context) {
  run_global_tree(args, context, reduce_sequential_addressing);
}

const Rung<Reduce> self{{.name = "sequential_addressing",
                         .step = 30,
                         .after = "interleaved_strided",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
