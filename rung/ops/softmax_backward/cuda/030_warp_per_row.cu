// SPDX-License-Identifier: Apache-2.0
// softmax_backward / warp per row
//
// Idea     One warp owns a row; its lanes reduce the sum by shuffles.
// Changes  against block_per_row: no shared memory and no barrier, so that warps run independently
//          and the loads of one overlap the arithmetic of another.
// Cost     2 loads each of y and dy and 1 store of dx per element; for rows of up to a few thousand
//          elements the second load hits L1. Loads are scalar.
// Limits   All valid arguments. For rows above a few thousand elements, one warp has too few loads
//          in flight.
// Source   The CUDA programming guide, on warp shuffle functions.
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

constexpr int lanes = 32;
constexpr int rows_per_block = 4;

template <class P>
__global__ void __launch_bounds__(lanes* rows_per_block) softmax_backward_warp(Rows<3> rows, P p) {
  using Sum = typename P::Sum;
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    if (!exists) return;  // whole warps exit; no barrier follows
    std::int64_t at[3];
    rows.offsets(row, at);
    const auto* y = p.y + at[0];
    const auto* dy = p.dy + at[1];
    auto* dx = p.dx + at[2];
    Sum sum = 0;
    for (std::int64_t i = threadIdx.x; i < rows.length; i += lanes) {
      sum +=
          term_of(convert<Sum>(y[i * rows.steps[0]]), convert<Sum>(dy[i * rows.steps[1]]), p.log);
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      sum += shuffle_xor(sum, distance);
    }
    for (std::int64_t i = threadIdx.x; i < rows.length; i += lanes) {
      const Sum result = gradient_of(convert<Sum>(y[i * rows.steps[0]]),
                                     convert<Sum>(dy[i * rows.steps[1]]), sum, p.scale, p.log);
      dx[i * rows.steps[2]] = convert<typename P::Out>(result);
    }
  });
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  with_types(args, [&]<class T, class Y>() {
    launch_rows(context, args.rows, {.threads = lanes, .rows = rows_per_block},
                softmax_backward_warp<GradientCall<T, Y>>, call_of<T, Y>(args));
  });
}

const Rung<SoftmaxBackward> self{{.name = "warp_per_row",
                                  .step = 30,
                                  .after = "block_per_row",
                                  .backend = device_backend,
                                  .teaching = true,
                                  .passes = {.loads = 2, .stores = 1},
                                  .run = run}};

}  // namespace
}  // namespace rung
