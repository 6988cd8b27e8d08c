// SPDX-License-Identifier: Apache-2.0
// reduce / shared memory
//
// Idea     the block copies its elements to shared memory and runs the tree there.
// Changes  against sequential_addressing: global memory is read once and one partial sum per block
//          is stored; the rounds use shared memory.
// Cost     4 bytes per element; 8 rounds with a barrier each for 256 elements; half of the threads
//          are idle from the first round on.
// Limits   one sum of contiguous f32.
// Source   M. Harris, "Optimizing parallel reduction in CUDA" (2007).
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

struct Elements {
  float at[pass_threads];
};

__global__ void reduce_shared(const float* x, std::int64_t n, float* partial) {
  Elements& elements = shared<Elements>();
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * pass_threads + t;
  elements.at[t] = i < n ? x[i] : 0.0F;
  __syncthreads();
  for (int stride = pass_threads / 2; stride > 0; stride /= 2) {
    if (t < stride) elements.at[t] += elements.at[t + stride];
    __syncthreads();
  }
  if (t == 0) partial[blockIdx.x] = elements.at[0];
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4.0 / pass_threads); }

void run(const Reduce::Args& args, Context& context) {
  run_passes<Elements>(args, context, pass_threads, reduce_shared);
}

const Rung<Reduce> self{{.name = "shared",
                         .step = 40,
                         .after = "sequential_addressing",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
