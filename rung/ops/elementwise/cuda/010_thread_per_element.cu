// SPDX-License-Identifier: Apache-2.0
// elementwise / thread per element
//
// Idea     one thread computes one element, at index blockIdx times blockDim plus threadIdx;
//          surplus threads of the last block do nothing.
// Changes  baseline.
// Cost     loads every operand once and stores the result once. A warp loads 32 adjacent elements:
//          4 sectors of 32 bytes, all of them used. Each thread issues one 4-byte load per operand
//          and exits.
// Limits   f32, contiguous. Short-lived threads keep few bytes in flight: launching blocks takes as
//          long as their work.
// Source   CUDA C++ Programming Guide, vector addition.
#include "rung/ops/elementwise/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace elementwise_cuda;

/// Computes z = f(x...), n elements each, one per thread.
template <class F, class... X>
__global__ void elementwise_thread_per_element(F f, float* z, std::int64_t n, X... x) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) z[i] = f(x[i]...);
}

void run(const Elementwise::Args& args, Context& context) {
  with_flat_f32(args, [&]<class F, class... X>(const F& f, float* z, std::int64_t n, X... x) {
    launch(context, {.grid = blocks_for(n, block_threads), .block = block_threads},
           elementwise_thread_per_element<F, X...>, f, z, n, x...);
  });
}

const Rung<Elementwise> self{{.name = "thread_per_element",
                              .step = 10,
                              .backend = device_backend,
                              .supports = require_flat_f32,
                              .passes = {.loads = 1, .stores = 1},
                              .work = memory_work,
                              .run = run}};

}  // namespace
}  // namespace rung
