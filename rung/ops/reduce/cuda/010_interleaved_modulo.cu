// SPDX-License-Identifier: Apache-2.0
// reduce / interleaved, by remainder
//
// Idea     a tree: in the first round every second thread adds its neighbour's element to its own,
//          in the next every fourth the one two further on, and so forth.
// Changes  nothing yet: this is where the ladder stands. (A single thread with a loop, or atomics
//          from all of them, would be slower still.)
// Cost     log2(256) rounds through global memory: each reads two elements and writes one for every
//          one that it removes. Working threads lie 2, 4, 8 ... apart, so that every warp stays in
//          all rounds for fewer and fewer of its lanes, and each access touches a line for itself.
// Limits   one sum of contiguous f32.
// Source   D. Kirk & W. Hwu, Programming Massively Parallel Processors, chapter on reduction;
//          M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 1.
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

__global__ void reduce_interleaved_modulo(const float* x, std::int64_t n, float* scratch,
                                          float* partial) {
  global_tree(x, n, scratch, partial, [](float* elements) {
    const int t = static_cast<int>(threadIdx.x);
    for (int stride = 1; stride < pass_threads; stride *= 2) {
      if (t % (2 * stride) == 0) elements[t] += elements[t + stride];
      __syncthreads();
    }
  });
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4 * 2.0); }

double estimate(const Reduce::Args& args, const Context& context) {
  return passes_seconds(args, context, 0.02, 3);
}

void run(const Reduce::Args& args, Context& context) {
  run_global_tree(args, context, reduce_interleaved_modulo);
}

const Rung<Reduce> self{{.name = "interleaved_modulo",
                         .step = 10,
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .estimate = estimate,
                         .run = run}};

}  // namespace
}  // namespace rung
