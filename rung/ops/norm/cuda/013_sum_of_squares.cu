// SPDX-License-Identifier: Apache-2.0
// norm / sum of squares
//
// Idea     One pass: the threads of a block sum s and s^2 together, and the variance is mean(s^2) -
//          mean(s)^2.
// Changes  against block_two_pass: a row is read twice, not three times, and the threads
//          synchronize once.
// Cost     2 reads of a row.
// Limits   Catastrophic cancellation, on purpose, if the mean is large relative to the spread: see
//          the CPU rung of this name. Rows of two elements and more, because the variance of one
//          element would be a rounding error only. f32; never picked.
// Source   T. Chan, G. Golub & R. LeVeque, Algorithms for computing the sample variance, 1983.
#include "rung/ops/norm/shared/cuda/norm.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int threads = 256;

struct Shared {
  WarpValues<Moments<float>, threads> moments;
};

__global__ void __launch_bounds__(threads) norm_sum_of_squares(NormArguments<float> call) {
  auto& scratch = shared<Shared>();
  for (std::int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const Elements<float> elements(call, row);
    Moments<float> moments{};  // about 0: the sum and the sum of squares
    for (std::int64_t i = threadIdx.x; i < call.n; i += threads) {
      moments.add(elements.s<true>(i), call.factors.shrink);
    }
    moments = block_reduce(moments, AddMoments{}, Moments<float>{}, scratch.moments);
    const Scale<float> scale = scale_of(call, elements.at, 0.0f, moments, threadIdx.x == 0);
    for (std::int64_t i = threadIdx.x; i < call.n; i += threads) elements.write(i, scale);
  }
}

Support supports(const Norm::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  return args.columns() != 1 ? supported : unsupported("rows of more than one element");
}

void run(const Norm::Args& args, Context& context) {
  launch_call(context, call_of<float>(args), {.threads = threads, .shared_bytes = sizeof(Shared)},
              norm_sum_of_squares);
}

const Rung<Norm> self{{.name = "sum_of_squares",
                       .step = 13,
                       .after = "block_two_pass",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = supports,
                       .passes = {.loads = 2, .stores = 1},
                       .run = run}};

}  // namespace
}  // namespace rung
