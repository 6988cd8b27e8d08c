// SPDX-License-Identifier: Apache-2.0
// reduce / one float atomic per block
//
// Idea     a segmented sum: each block reduces its segment of 512 elements and adds the result to y
//          by one atomic operation.
// Changes  against first_add_on_load: one pass, since no partial sums remain to be added; a launch
//          before it sets y to 0.
// Cost     4 bytes per element; one atomic per block, serialized on one address.
// Limits   one sum of contiguous f32. The order of the atomics, and with it the rounding, varies
//          from run to run: results are not reproducible bit for bit, and reduce never chooses this
//          rung. atomic_finish does the same for integers, whose sums do not depend on the order.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, section 10.7.
#include "rung/core/varying_bits.hpp"
#include "rung/ops/reduce/cuda/detail/passes.hpp"

namespace rung {
namespace {

using namespace reduce_cuda;

constexpr int segment = 2 * pass_threads;

struct Elements {
  float at[pass_threads];
};

__global__ void reduce_float_atomic_zero(float* y) { *y = 0; }

__global__ void reduce_float_atomic_per_block(const float* x, std::int64_t n, float* y) {
  Elements& elements = shared<Elements>();
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t i = std::int64_t{blockIdx.x} * segment + t;
  const float first = i < n ? x[i] : 0.0F;
  const float second = i + pass_threads < n ? x[i + pass_threads] : 0.0F;
  elements.at[t] = first + second;
  for (int stride = pass_threads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (t < stride) elements.at[t] += elements.at[t + stride];
  }
  if (t == 0) atomicAdd(y, elements.at[0]);
}

void run(const Reduce::Args& args, Context& context) {
  const std::int64_t n = args.terms.size();
  float* const y = static_cast<float*>(args.y.data);
  launch(context, {.grid = 1, .block = 1}, reduce_float_atomic_zero, y);
  if (n == 0) return;  // an empty grid is no valid launch
  launch(context,
         {.grid = ceil_div(n, segment), .block = pass_threads, .shared_bytes = sizeof(Elements)},
         reduce_float_atomic_per_block, static_cast<const float*>(args.x.data), n, y);
}

const Rung<Reduce> self{{.name = "float_atomic_per_block",
                         .step = 55,
                         .after = "first_add_on_load",
                         .backend = device_backend,
                         .teaching = true,
                         .supports = require_one_f32_sum,
                         .passes = {.loads = 1, .stores = 1},
                         .run = run}};
const VaryingBits varies{self.info};

}  // namespace
}  // namespace rung
