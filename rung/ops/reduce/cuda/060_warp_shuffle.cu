// SPDX-License-Identifier: Apache-2.0
// reduce / warp shuffle
//
// Idea     once 32 elements are left, a single warp adds them by shuffles, register to register.
// Changes  against first_add_on_load: the last five rounds need no shared memory and no barrier, at
//          which the seven other warps would only wait.
// Cost     3 rounds with barriers, 5 rounds of shuffles.
// Limits   one sum of contiguous f32.
// Source   J. Luitjens, "Faster parallel reductions on Kepler" (2014).
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

constexpr int a_block = 2 * pass_threads;
constexpr int warp = 32;

struct Elements {
  float at[pass_threads];
};

__global__ void reduce_warp_shuffle(const float* x, std::int64_t n, float* partial) {
  Elements& elements = shared<Elements>();
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * a_block + t;
  const float first = i < n ? x[i] : 0.0F;
  const float second = i + pass_threads < n ? x[i + pass_threads] : 0.0F;
  elements.at[t] = first + second;
  __syncthreads();
  for (int stride = pass_threads / 2; stride >= warp; stride /= 2) {
    if (t < stride) elements.at[t] += elements.at[t + stride];
    __syncthreads();
  }
  if (t >= warp) return;
  float sum = elements.at[t];
  for (int distance = warp / 2; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffU, sum, distance);
  }
  if (t == 0) partial[blockIdx.x] = sum;
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4.0 / a_block); }

void run(const Reduce::Args& args, Context& context) {
  run_passes<Elements>(args, context, a_block, reduce_warp_shuffle);
}

const Rung<Reduce> self{{.name = "warp_shuffle",
                         .step = 60,
                         .after = "first_add_on_load",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
