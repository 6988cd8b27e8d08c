// SPDX-License-Identifier: Apache-2.0
// softmax / naive
//
// Idea     One thread per row computes the definition: exponentials divided by their sum.
// Changes  baseline.
// Cost     x is read twice, y written once, uncoalesced: neighboring threads are a row apart, so
//          each load fetches a 32-byte sector for 4 bytes.
// Limits   The rung that fails on purpose: exponentials above 88.7 overflow and infinity / infinity
//          is NaN; far below 0 all vanish. supports() therefore reads x and accepts only values
//          that the definition handles. f32, no logarithm; few rows leave the GPU underused.
// Source   any textbook.
#include "rung/ops/softmax/cuda/detail/softmax.hpp"
#include "rung/ops/softmax/shared/value_range.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

__global__ void softmax_naive(Rows<2> rows, SoftmaxCall<float, float> p) {
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    if (!exists) return;
    const float* x = p.x + rows.offset<0>(row);
    float* y = p.y + rows.offset<1>(row);
    float sum = 0;
    for (std::int64_t i = 0; i < rows.length; ++i) sum += expf(p.scale * x[i * rows.steps[0]]);
    for (std::int64_t i = 0; i < rows.length; ++i) {
      y[i * rows.steps[1]] = expf(p.scale * x[i * rows.steps[0]]) / sum;
    }
  });
}

void run(const Softmax::Args& args, Context& context) {
  launch_rows(context, args.rows, {.threads = 1, .rows = 256}, softmax_naive,
              call_of<float, float>(args));
}

const Rung<Softmax> self{{.name = "naive",
                          .step = 10,
                          .backend = device_backend,
                          .teaching = true,
                          .supports = softmax_values::supports_naive,
                          .passes = {.loads = 2, .stores = 1},
                          .run = run}};

}  // namespace
}  // namespace rung
