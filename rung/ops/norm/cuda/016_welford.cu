// SPDX-License-Identifier: Apache-2.0
// norm / Welford
//
// Idea     One stable pass: each thread updates a running mean and the sum of squares about it;
//          Chan's formula combines the pairs of different threads.
// Changes  against sum_of_squares: no cancellation. Against block_two_pass: one pass and one
//          synchronization fewer.
// Cost     2 reads of a row; one division per element.
// Limits   The mean carries the rounding of its updates: with a mean of 100, results have the
//          rounding errors of numbers around 100. f32 and bf16; scalar loads.
// Source   B. Welford 1962; T. Chan, G. Golub & R. LeVeque 1979, Updating formulae and a pairwise
//          algorithm for computing sample variances.
#include "rung/ops/norm/shared/cuda/norm.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int threads = 256;

struct Running {
  float count;
  float mean;
  float squares;  // sum of (s - mean)^2

  __device__ __forceinline__ void add(float s, bool layer) {
    count += 1;
    const float before = s - mean;
    if (layer) mean += before / count;
    squares += before * (s - mean);
  }
};

/// Combines the statistics of two sets of elements [Chan, Golub & LeVeque]; RMS norm has means of
/// 0.
struct Join {
  __device__ __forceinline__ Running operator()(Running a, Running b) const {
    const float count = a.count + b.count;
    if (count == 0) return a;
    const float distance = b.mean - a.mean;
    const float share = b.count / count;
    return {count, a.mean + distance * share,
            a.squares + b.squares + distance * distance * a.count * share};
  }
};

struct Shared {
  WarpValues<Running, threads> running;
  WarpValues<Moments<float>, threads> moments;
};

template <class T>
__global__ void __launch_bounds__(threads) norm_welford(NormArguments<T> call) {
  auto& scratch = shared<Shared>();
  for (std::int64_t row = blockIdx.x; row < call.rows; row += gridDim.x) {
    const Elements<T> elements(call, row);
    Running running{};
    for (std::int64_t i = threadIdx.x; i < call.n; i += threads) {
      running.add(elements.template s<true>(i), call.layer);
    }
    running = block_reduce(running, Join{}, Running{}, scratch.running);
    // The mean of an empty row is 0 / 0.
    float mean = call.layer && call.n == 0 ? running.mean * call.factors.part : running.mean;
    Moments<float> moments{0.0f, running.squares};
    const bool in_range = running.squares < std::numeric_limits<float>::infinity() &&
                          center_near(running.mean) == running.mean;
    if (call.layer && !in_range) {
      // The running mean may have overflowed: moments about 0 show whether all elements are finite.
      mean = 0;
      moments = {};
      for (std::int64_t i = threadIdx.x; i < call.n; i += threads) {
        moments.add(elements.s(i), call.factors.shrink);
      }
      moments = block_reduce(moments, AddMoments{}, Moments<float>{}, scratch.moments);
    }
    const Scale<float> scale = scale_of(call, elements.at, mean, moments, threadIdx.x == 0);
    for (std::int64_t i = threadIdx.x; i < call.n; i += threads) elements.write(i, scale);
  }
}

Support supports(const Norm::Args& args, const Context&) {
  const bool takes = args.x.dtype == DType::f32 || args.x.dtype == DType::bf16;
  return takes ? supported : unsupported("f32 and bf16 only");
}

void run(const Norm::Args& args, Context& context) {
  visit<float, bf16>(args.x.dtype, [&]<class T>() {
    launch_call(context, call_of<T>(args), {.threads = threads, .shared_bytes = sizeof(Shared)},
                norm_welford<T>);
  });
}

const Rung<Norm> self{{.name = "welford",
                       .step = 16,
                       .after = "sum_of_squares",
                       .backend = device_backend,
                       .teaching = true,
                       .supports = supports,
                       .passes = {.loads = 2, .stores = 1},
                       .run = run}};

}  // namespace
}  // namespace rung
