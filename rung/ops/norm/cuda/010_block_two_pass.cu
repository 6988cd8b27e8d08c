// SPDX-License-Identifier: Apache-2.0
// norm / block two pass
//
// Idea     One block per row: its threads sum every 256th element, synchronize, sum the differences
//          from the mean and their squares, synchronize, and write y. The sum of the differences
//          also corrects the mean, at one addition per element (norm.hpp).
// Changes  baseline.
// Cost     A row is read three times, the second and third time from L1 or L2 if it fits.
// Limits   Scalar loads; any strides, so all valid arguments.
// Source   T. Chan, G. Golub & R. LeVeque, Algorithms for computing the sample variance, 1983.
#include "rung/ops/norm/shared/cuda/norm.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int threads = 256;

template <class W>
struct Shared {
  WarpValues<W, threads> sums;
  WarpValues<Moments<W>, threads> moments;
};

template <class T>
__global__ void __launch_bounds__(threads) norm_block_two_pass(NormArguments<T> call) {
  using W = Accumulator<T>;
  auto& scratch = shared<Shared<W>>();
  for (std::int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const Elements<T> elements(call, row);
    W center = 0;
    if (call.layer || call.residual != nullptr) {
      W sum = 0;
      for (std::int64_t i = threadIdx.x; i < call.n; i += threads) {
        sum += elements.template s<true>(i) * call.factors.shrink;
      }
      sum = block_reduce(sum, Plus{}, W{0}, scratch.sums);
      if (call.layer) center = center_near(sum * call.factors.shrunk_part);
    }
    Moments<W> moments{};
    for (std::int64_t i = threadIdx.x; i < call.n; i += threads) {
      moments.add(elements.s(i) - center, call.factors.shrink);
    }
    moments = block_reduce(moments, AddMoments{}, Moments<W>{}, scratch.moments);
    const Scale<W> scale = scale_of(call, elements.at, center, moments, threadIdx.x == 0);
    for (std::int64_t i = threadIdx.x; i < call.n; i += threads) elements.write(i, scale);
  }
}

Work work(const Norm::Args& args, const Context&) {
  const bool contiguous = norm_lines::lines_of(args).contiguous_columns();
  return row_work(args.rows(), {.threads = threads}, ceil_div(args.columns(), threads),
                  contiguous ? type_path(args.x.dtype) : "strided");
}

void run(const Norm::Args& args, Context& context) {
  with_call(args, [&]<class T>(const NormArguments<T>& call) {
    launch_call(context, call, {.threads = threads, .shared_bytes = sizeof(Shared<Accumulator<T>>)},
                norm_block_two_pass<T>);
  });
}

const Rung<Norm> self{{.name = "block_two_pass",
                       .step = 10,
                       .backend = device_backend,
                       .passes = {.loads = 3, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
