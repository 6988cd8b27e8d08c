// SPDX-License-Identifier: Apache-2.0
// reduce / first addition while loading
//
// Idea     each thread loads two elements and stores their sum to shared memory: the first round of
//          the tree happens during the load.
// Changes  against shared: half as many blocks for the same elements, and no thread only loads.
// Cost     8 rounds for 512 elements.
// Limits   one sum of contiguous f32.
// Source   M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 4.
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

constexpr int a_block = 2 * pass_threads;

struct Elements {
  float at[pass_threads];
};

__global__ void reduce_first_add_on_load(const float* x, std::int64_t n, float* partial) {
  Elements& elements = shared<Elements>();
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * a_block + t;
  const float first = i < n ? x[i] : 0.0F;
  const float second = i + pass_threads < n ? x[i + pass_threads] : 0.0F;
  elements.at[t] = first + second;
  __syncthreads();
  for (int stride = pass_threads / 2; stride > 0; stride /= 2) {
    if (t < stride) elements.at[t] += elements.at[t + stride];
    __syncthreads();
  }
  if (t == 0) partial[blockIdx.x] = elements.at[0];
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4.0 / a_block); }

void run(const Reduce::Args& args, Context& context) {
  run_passes<Elements>(args, context, a_block, reduce_first_add_on_load);
}

const Rung<Reduce> self{{.name = "first_add_on_load",
                         .step = 50,
                         .after = "shared",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
