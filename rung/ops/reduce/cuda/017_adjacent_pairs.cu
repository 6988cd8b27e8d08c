// SPDX-License-Identifier: Apache-2.0
// reduce / adjacent pairs
//
// Idea     each thread loads two elements and owns an adjacent pair: thread t adds partial[2 t +
//          stride] to partial[2 t], in the first round in every thread, then in every second, every
//          fourth and so on.
// Changes  against shared_modulo: half as many threads for the same elements, and all are active in
//          the first round. From the second round on warps diverge as before.
// Cost     9 rounds for 512 elements. The words that a warp's lanes access are 2, 4, 8 ... apart:
//          two-way bank conflicts until few lanes are left.
// Limits   one sum of contiguous f32.
// Source   D. Kirk and W. Hwu, Programming Massively Parallel Processors, chapter on reduction.
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

constexpr int per_block = 2 * pass_threads;

struct Elements {
  float at[per_block];
};

__global__ void reduce_adjacent_pairs(const float* x, std::int64_t n, float* result) {
  auto& partial = shared<Elements>().at;
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t start = std::int64_t{blockIdx.x} * per_block;
  partial[t] = start + t < n ? x[start + t] : 0.0F;
  partial[t + pass_threads] = start + t + pass_threads < n ? x[start + t + pass_threads] : 0.0F;
  for (int stride = 1; stride <= pass_threads; stride *= 2) {
    __syncthreads();
    if (t % stride == 0) partial[2 * t] += partial[2 * t + stride];
  }
  if (t == 0) result[blockIdx.x] = partial[0];
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4.0 / per_block); }

void run(const Reduce::Args& args, Context& context) {
  run_passes<Elements>(args, context, per_block, reduce_adjacent_pairs);
}

const Rung<Reduce> self{{.name = "adjacent_pairs",
                         .step = 17,
                         .after = "shared_modulo",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .run = run}};

}  // namespace
}  // namespace rung
