// SPDX-License-Identifier: Apache-2.0
// softmax_backward / naive
//
// Idea     One thread per row computes the definition: the sum of dy y (log: of dy), then each
//          element.
// Changes  baseline.
// Cost     y and dy are read twice, dx written once, uncoalesced: adjacent threads are a row apart,
//          so each load of a contiguous row fetches a 32-byte sector for 4 bytes of f32.
// Limits   All valid arguments; few rows leave the GPU underused.
// Source   any textbook.
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

template <class P>
__global__ void softmax_backward_naive(Rows<3> rows, P p) {
  using Sum = typename P::Sum;
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    if (!exists) return;
    std::int64_t at[3];
    rows.offsets(row, at);
    const auto* y = p.y + at[0];
    const auto* dy = p.dy + at[1];
    auto* dx = p.dx + at[2];
    Sum sum = 0;
    for (std::int64_t i = 0; i < rows.length; ++i) {
      sum +=
          term_of(convert<Sum>(y[i * rows.steps[0]]), convert<Sum>(dy[i * rows.steps[1]]), p.log);
    }
    for (std::int64_t i = 0; i < rows.length; ++i) {
      const Sum result = gradient_of(convert<Sum>(y[i * rows.steps[0]]),
                                     convert<Sum>(dy[i * rows.steps[1]]), sum, p.scale, p.log);
      dx[i * rows.steps[2]] = convert<typename P::Out>(result);
    }
  });
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  with_types(args, [&]<class T, class Y>() {
    launch_rows(context, args.rows, {.threads = 1, .rows = 256},
                softmax_backward_naive<GradientCall<T, Y>>, call_of<T, Y>(args));
  });
}

const Rung<SoftmaxBackward> self{{.name = "naive",
                                  .step = 10,
                                  .backend = device_backend,
                                  .teaching = true,
                                  .passes = {.loads = 2, .stores = 1},
                                  .run = run}};

}  // namespace
}  // namespace rung
