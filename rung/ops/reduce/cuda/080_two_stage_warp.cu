// SPDX-License-Identifier: Apache-2.0
// reduce / two stages of warps
//
// Idea     every warp first reduces its own 32 sums by shuffles; then one warp reduces the warps'
//          sums.
// Changes  against warp_shuffle: one barrier instead of four, and 8 words of shared memory instead
//          of 256. In the first stage all warps work independently.
// Cost     10 shuffles and one barrier for 512 elements.
// Limits   one sum of contiguous f32. A thread loads only two elements: launching threads and
//          blocks takes longer than their work.
// Source   J. Luitjens, "Faster parallel reductions on Kepler" (2014).
#include "rung/device/collectives.hpp"
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

constexpr int a_block = 2 * pass_threads;

using Elements = WarpValues<float, pass_threads>;

__global__ void reduce_two_stage_warp(const float* x, std::int64_t n, float* partial) {
  Elements& elements = shared<Elements>();
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * a_block + t;
  const float first = i < n ? x[i] : 0.0F;
  const float second = i + pass_threads < n ? x[i + pass_threads] : 0.0F;
  const auto plus = [](float a, float b) { return a + b; };
  float sum = warp_reduce(first + second, plus);
  if (lane_of_thread() == 0) elements.of_warp[t / warp_size] = sum;
  __syncthreads();
  if (t >= warp_size) return;
  sum = warp_reduce(t < Elements::warps ? elements.of_warp[t] : 0.0F, plus);
  if (t == 0) partial[blockIdx.x] = sum;
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4.0 / a_block); }

void run(const Reduce::Args& args, Context& context) {
  run_passes<Elements>(args, context, a_block, reduce_two_stage_warp);
}

const Rung<Reduce> self{{.name = "two_stage_warp",
                         .step = 80,
                         .after = "cooperative_groups",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
