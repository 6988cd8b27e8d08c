// SPDX-License-Identifier: Apache-2.0
// reduce / shared memory, by remainder
//
// Idea     the tree of interleaved_modulo on elements in shared memory.
// Changes  against interleaved_modulo: global memory is read once, and one partial sum per block is
//          stored; the rounds use shared memory. The divergence is the same: in round s only
//          threads whose index is a multiple of 2 s work.
// Cost     4 bytes per element; 8 rounds for 256 elements, each with a barrier and a remainder per
//          thread. Every warp has an active lane in the first five.
// Limits   one sum of contiguous f32.
// Source   M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 1.
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

struct Elements {
  float at[pass_threads];
};

__global__ void reduce_shared_modulo(const float* x, std::int64_t n, float* partial) {
  Elements& elements = shared<Elements>();
  const int tid = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * pass_threads + tid;
  elements.at[tid] = i < n ? x[i] : 0.0F;
  __syncthreads();
  for (int s = 1; s < pass_threads; s *= 2) {
    if (tid % (2 * s) == 0) elements.at[tid] += elements.at[tid + s];
    __syncthreads();
  }
  if (tid == 0) partial[blockIdx.x] = elements.at[0];
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4.0 / pass_threads); }

void run(const Reduce::Args& args, Context& context) {
  run_passes<Elements>(args, context, pass_threads, reduce_shared_modulo);
}

const Rung<Reduce> self{{.name = "shared_modulo",
                         .step = 14,
                         .after = "interleaved_modulo",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
