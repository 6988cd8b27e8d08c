// SPDX-License-Identifier: Apache-2.0
// softmax / safe, a block per row
//
// Idea     Subtract the row's maximum before the exponential, so that the largest exponential is 1
//          and nothing overflows; use one block per row, whose threads read adjacent elements.
// Changes  against naive: correct for every input, and coalesced access.
// Cost     x is read three times (maximum, sum, results) and y written once: 16 bytes per f32
//          element, where 8 are compulsory. Two block-wide reductions with one or two barriers
//          each.
// Limits   f32. Rows of fewer than 256 elements leave threads idle.
// Source   J. Bridle, Training stochastic model recognition algorithms, 1990.
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int threads = 256;

__global__ void __launch_bounds__(threads)
    softmax_safe_block(Rows<2> rows, SoftmaxCall<float, float> p) {
  RowScratch<float>& scratch = shared<RowScratch<float>>();
  for_each_row(rows.count(), [&](std::int64_t row, bool) {
    const float* x = p.x + rows.offset<0>(row);
    float* y = p.y + rows.offset<1>(row);
    const std::int64_t step = rows.steps[0];
    float maximum = no_maximum<float>;
    for (std::int64_t i = threadIdx.x; i < rows.length; i += threads) {
      maximum = Larger{}(maximum, x[i * step]);
    }
    maximum = row_reduce(maximum, Larger{}, scratch);
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < rows.length; i += threads) {
      sum += fast_exp((x[i * step] - maximum) * p.scale);
    }
    sum = row_reduce(sum, Plus{}, scratch);
    const float last = p.log ? logarithm(sum) : reciprocal(sum);
    for (std::int64_t i = threadIdx.x; i < rows.length; i += threads) {
      y[i * rows.steps[1]] = result_of(x[i * step], maximum, p.scale, last, p.log);
    }
  });
}

Support supports(const Softmax::Args& args, const Context&) {
  return args.x.dtype == DType::f32 ? supported : unsupported("f32 only");
}

Work work(const Softmax::Args& args, const Context&) {
  return row_work(args.count(), {.threads = threads}, ceil_div(args.length(), threads),
                  row_path(args.rows.are_contiguous(), args.length(), 16384));
}

void run(const Softmax::Args& args, Context& context) {
  launch_rows(context, args.rows,
              {.threads = threads, .rows = 1, .shared_bytes = sizeof(RowScratch<float>)},
              softmax_safe_block, call_of<float, float>(args));
}

const Rung<Softmax> self{{.name = "safe_block",
                          .step = 20,
                          .after = "naive",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 3, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
