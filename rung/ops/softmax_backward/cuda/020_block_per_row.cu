// SPDX-License-Identifier: Apache-2.0
// softmax_backward / block per row
//
// Idea     One block per row, whose threads load adjacent elements; the sum is reduced by shuffles
//          within warps and through shared memory between them.
// Changes  against naive: coalesced access.
// Cost     2 loads each of y and dy and 1 store of dx per element: 20 bytes per f32, where 12 are
//          compulsory.
// Limits   f32, contiguous rows of fewer than 2^31 elements; types/any_strides handles other
//          arguments. Rows of fewer than 256 elements leave threads idle; few long rows leave SMs
//          idle.
// Source   M. Harris, Optimizing parallel reduction in CUDA, 2007, for the sum.
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

constexpr int threads = 256;

__global__ void __launch_bounds__(threads)
    softmax_backward_block(Rows<3> rows, GradientCall<float, float> p) {
  auto& scratch = shared<RowScratch<float>>();
  const auto length = static_cast<unsigned>(rows.length);
  for_each_row(rows.count(), [&](std::int64_t row, bool) {
    std::int64_t at[3];
    rows.offsets(row, at);
    const float* y = p.y + at[0];
    const float* dy = p.dy + at[1];
    float* dx = p.dx + at[2];
    float sum = 0;
    for (unsigned i = threadIdx.x; i < length; i += threads) {
      sum += p.log ? dy[i] : dy[i] * y[i];
    }
    sum = row_reduce(sum, Plus{}, scratch);
    for (unsigned i = threadIdx.x; i < length; i += threads) {
      dx[i] = p.scale * (p.log ? dy[i] - fast_exp(y[i]) * sum : (dy[i] - sum) * y[i]);
    }
  });
}

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  if (args.y.dtype != DType::f32 || args.dx.dtype != DType::f32) return unsupported("f32 only");
  if (args.length() > 0x7fffffff) return unsupported("rows of 2^31 elements and more");
  return require_contiguous_rows(args);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  launch_rows(context, args.rows,
              {.threads = threads, .rows = 1, .shared_bytes = sizeof(RowScratch<float>)},
              softmax_backward_block, call_of<float, float>(args));
}

const Rung<SoftmaxBackward> self{{.name = "block_per_row",
                                  .step = 20,
                                  .after = "naive",
                                  .backend = device_backend,
                                  .teaching = true,
                                  .supports = supports,
                                  .passes = {.loads = 2, .stores = 1},
                                  .run = run}};

}  // namespace
}  // namespace rung
