// SPDX-License-Identifier: Apache-2.0
// softmax / online, a block per row
//
// Idea     Compute maximum and sum in one pass: a thread rescales its sum to the new maximum once
//          per batch of four loaded elements. At the end the block reduces the maximum first, then
//          the sums, each rescaled once.
// Changes  against safe_block: x is read twice instead of three times; rows are contiguous, so
//          loops need 32-bit indices and no stride.
// Cost     2 loads and 1 store per element: 12 bytes per f32, where 8 are compulsory. 2.25
//          exponentials per element: one in each pass and, per four elements, one that rescales the
//          sum unconditionally.
// Limits   f32, contiguous rows of fewer than 2^30 elements; types/any_strides handles other
//          arguments. A row occupies one block, so few long rows leave the GPU underused.
// Source   M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018.
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr int threads = 256;

__global__ void __launch_bounds__(threads)
    softmax_online_block(Rows<2> rows, SoftmaxCall<float, float> p) {
  RowScratch<float>& scratch = shared<RowScratch<float>>();
  const int length = static_cast<int>(rows.length);
  const int thread = static_cast<int>(threadIdx.x);
  for_each_row(rows.count(), [&](std::int64_t row, bool) {
    const float* x = p.x + rows.offset<0>(row);
    float* y = p.y + rows.offset<1>(row);
    float maximum = no_maximum<float>;
    float sum = 0;
    for (int i = thread; i < length; i += 4 * threads) {
      float values[4];  // loaded together; past the row -infinity, whose exponential is 0
      float larger = maximum;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int at = i + k * threads;
        values[k] = at < length ? x[at] : -std::numeric_limits<float>::infinity();
        larger = fmaxf(larger, values[k]);
      }
      sum *= fast_exp((maximum - larger) * p.scale);
      maximum = larger;
#pragma unroll
      for (int k = 0; k < 4; ++k) sum += fast_exp((values[k] - maximum) * p.scale);
    }
    const float all = row_reduce(maximum, Larger{}, scratch);
    sum = row_reduce(sum * fast_exp((maximum - all) * p.scale), Plus{}, scratch);
    const float last = p.log ? logarithm(sum) : reciprocal(sum);
#pragma unroll 4
    for (int i = thread; i < length; i += threads) {
      y[i] = result_of(x[i], all, p.scale, last, p.log);
    }
  });
}

Support supports(const Softmax::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.length() >= std::int64_t{1} << 30) return unsupported("rows of 2^30 elements and more");
  return require_contiguous_rows(args);
}

void run(const Softmax::Args& args, Context& context) {
  launch_rows(context, args.rows,
              {.threads = threads, .rows = 1, .shared_bytes = sizeof(RowScratch<float>)},
              softmax_online_block, call_of<float, float>(args));
}

const Rung<Softmax> self{{.name = "online_block",
                          .step = 30,
                          .after = "safe_block",
                          .backend = device_backend,
                          .teaching = true,
                          .supports = supports,
                          .passes = {.loads = 2, .stores = 1},
                          .run = run}};

}  // namespace
}  // namespace rung
