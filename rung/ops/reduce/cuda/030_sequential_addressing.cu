// SPDX-License-Identifier: Apache-2.0
// reduce / sequential addressing
//
// Idea     the tree upside down: the upper half of the elements is added to the lower half, then
//          the upper quarter to the lower one, until one is left.
// Changes  against interleaved_strided: neighbouring threads touch neighbouring elements in every
//          round, so that a warp's access is one line, not up to 32 of them.
// Cost     the same additions, a fraction of the sectors.
// Limits   one sum of contiguous f32.
// Source   M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 3.
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

__global__ void reduce_sequential_addressing(const float* x, std::int64_t n, float* scratch,
                                             float* partial) {
  global_tree(x, n, scratch, partial, [](float* elements) {
    const int t = static_cast<int>(threadIdx.x);
    for (int stride = pass_threads / 2; stride > 0; stride /= 2) {
      if (t < stride) elements[t] += elements[t + stride];
      __syncthreads();
    }
  });
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4 * 2.0); }

double estimate(const Reduce::Args& args, const Context& context) {
  return passes_seconds(args, context, 0.08, 3);
}

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
                         .estimate = estimate,
                         .run = run}};

}  // namespace
}  // namespace rung
