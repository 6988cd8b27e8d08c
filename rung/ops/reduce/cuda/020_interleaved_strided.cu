// SPDX-License-Identifier: Apache-2.0
// reduce / interleaved, by stride
//
// Idea     the same tree with the work given to the first threads: thread t adds to element
//          2 * stride * t instead of every 2 * stride-th thread to its own.
// Changes  against interleaved_modulo: working threads are neighbours. After the first round whole
//          warps have nothing to do and leave the field to others; the division is gone.
// Cost     the same accesses, still 2, 4, 8 ... elements apart.
// Limits   one sum of contiguous f32.
// Source   M. Harris, "Optimizing parallel reduction in CUDA" (2007), kernel 2.
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

__global__ void reduce_interleaved_strided(const float* x, std::int64_t n, float* scratch,
                                           float* partial) {
  global_tree(x, n, scratch, partial, [](float* elements) {
    for (int stride = 1; stride < pass_threads; stride *= 2) {
      const int at = 2 * stride * static_cast<int>(threadIdx.x);
      if (at < pass_threads) elements[at] += elements[at + stride];
      __syncthreads();
    }
  });
}

Cost traffic(const Reduce::Args& args) { return passes_traffic(args, 4 * 2.0); }

double estimate(const Reduce::Args& args, const Context& context) {
  return passes_seconds(args, context, 0.04, 3);
}

void run(const Reduce::Args& args, Context& context) {
  run_global_tree(args, context, reduce_interleaved_strided);
}

const Rung<Reduce> self{{.name = "interleaved_strided",
                         .step = 20,
                         .after = "interleaved_modulo",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .traffic = traffic,
                         .estimate = estimate,
                         .run = run}};

}  // namespace
}  // namespace rung
