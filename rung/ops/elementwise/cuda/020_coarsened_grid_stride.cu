// SPDX-License-Identifier: Apache-2.0
// elementwise / coarsened grid stride
//
// Idea     launch as many threads as the device holds at once; each computes many elements, a grid
//          stride apart, so that a warp still loads adjacent elements.
// Changes  against thread_per_element: blocks launch once; the function is selected once per
//          thread, not per element; four elements at a time keep four loads per operand in flight.
// Cost     the same traffic; a few instructions fewer per element.
// Limits   f32, contiguous. 4 bytes per load, while an SM has a limited number of loads in flight.
// Source   M. Harris, CUDA Pro Tip: Write Flexible Kernels with Grid-Stride Loops, 2013.
#include "rung/core/bounds.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/elementwise/cuda/detail/rung.hpp"

namespace rung {
namespace {

using namespace elementwise_cuda;

/// Computes z = f(x...), n elements each, in a grid-stride loop.
template <class F, class... X>
__global__ void elementwise_coarsened_grid_stride(F f, float* z, std::int64_t n, X... x) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
#pragma unroll 4
  for (std::int64_t i = first; i < n; i += stride) z[i] = f(x[i]...);
}

/// Calls g(kernel, blocks, f, z, n, x...) with the launch's grid.
template <class G>
void with_grid(const Elementwise::Args& args, const Context& context, const G& g) {
  with_flat_f32(args, [&]<class F, class... X>(const F& f, float* z, std::int64_t n, X... x) {
    const auto kernel = elementwise_coarsened_grid_stride<F, X...>;
    const std::int64_t blocks =
        smaller(blocks_for(n, block_threads), resident_blocks(context, kernel, block_threads));
    g(kernel, blocks, f, z, n, x...);
  });
}

void run(const Elementwise::Args& args, Context& context) {
  with_grid(args, context, [&](auto kernel, std::int64_t blocks, const auto&... arguments) {
    launch(context, {.grid = blocks, .block = block_threads}, kernel, arguments...);
  });
}

const Rung<Elementwise> self{{.name = "coarsened_grid_stride",
                              .step = 20,
                              .after = "thread_per_element",
                              .backend = device_backend,
                              .supports = require_flat_f32,
                              .passes = {.loads = 1, .stores = 1},
                              .work = memory_work,
                              .run = run}};

}  // namespace
}  // namespace rung
