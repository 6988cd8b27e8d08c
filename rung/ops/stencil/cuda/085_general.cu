// SPDX-License-Identifier: Apache-2.0
// stencil / general
//
// Idea     The naive rung for every problem: one thread per element of all arrays, 64-bit strides,
//          every type, edge and mask, weights read in place.
// Changes  Against vectorized: accepts every valid problem.
// Cost     Two loads per tap, mostly from L1; weights of a separable mask are multiplied out for
//          each element.
// Limits   Bound by load instructions and index arithmetic.
#include "rung/ops/stencil/cuda/detail/arrays.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int block_threads = 256;

template <class P>
__global__ void __launch_bounds__(block_threads)
    stencil_general(const __grid_constant__ P p, std::int64_t elements, std::int64_t threads) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements;
       i += threads) {
    std::int64_t rest = i;
    std::int64_t at[3];  // position of the element: plane, row, column
#pragma unroll
    for (int axis = 2; axis >= 0; --axis) {
      const std::int64_t quotient = rest / p.axis[axis].extent;
      at[axis] = rest - quotient * p.axis[axis].extent;
      rest = quotient;
    }
    std::int64_t first[2];
    p.batch.offsets(rest, first);
    typename P::Sum sum = 0;
    for (int k = 0; k < p.axis[0].taps; ++k) {
      const std::int64_t plane = p.inside(0, at[0] + k - p.axis[0].origin);
      for (int r = 0; r < p.axis[1].taps; ++r) {
        const std::int64_t row = p.inside(1, at[1] + r - p.axis[1].origin);
        if (plane < 0 || row < 0) continue;
        const auto* x = p.x + first[0] + plane * p.axis[0].x + row * p.axis[1].x;
        for (int c = 0; c < p.axis[2].taps; ++c) {
          const std::int64_t column = p.inside(2, at[2] + c - p.axis[2].origin);
          if (column < 0) continue;
          sum += p.weights.at(k, r, c) * convert<typename P::Sum>(x[column * p.axis[2].x]);
        }
      }
    }
    const std::int64_t to =
        first[1] + at[0] * p.axis[0].y + at[1] * p.axis[1].y + at[2] * p.axis[2].y;
    p.y[to] = element_of<typename P::Out>(p.scale * sum);
  }
}

Cost traffic(const Stencil::Args& args) { return traffic_of(args, args.iterations); }

std::int64_t blocks_of(const Stencil::Args& args) {
  constexpr std::int64_t max_blocks = std::int64_t{1} << 20;
  return smaller(max_blocks, ceil_div(args.elements(), block_threads));
}

Work work(const Stencil::Args& args, const Context&) {
  const std::int64_t elements = ceil_div(args.elements(), blocks_of(args));
  const double loads = 1.0 * ceil_div(elements, block_threads) * args.taps();
  return launches_work(args, args.iterations, blocks_of(args), elements * args.taps(), loads);
}

void run(const Stencil::Args& args, Context& context) {
  const std::int64_t elements = args.elements();
  const std::int64_t blocks = blocks_of(args);
  stencil_detail::for_each_step(args, context, 0, [&](const Stencil::Args& step, void*) {
    with_types(step, [&]<class T, class Y>() {
      launch(context, {.grid = blocks, .block = block_threads}, stencil_general<Arrays<T, Y>>,
             arrays_of<T, Y>(step), elements, blocks * block_threads);
    });
  });
}

const Rung<Stencil> self{{.name = "general",
                          .step = 85,
                          .after = "vectorized",
                          .backend = device_backend,
                          .traffic = traffic,
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
