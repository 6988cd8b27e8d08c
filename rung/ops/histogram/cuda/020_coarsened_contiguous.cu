// SPDX-License-Identifier: Apache-2.0
// histogram / coarsened, contiguous
//
// Idea     a thread takes 16 consecutive elements, as a CPU's thread would.
// Changes  against global_atomics: fewer threads with more work each. A counterexample: neighboring
//          threads read addresses 16 elements apart (uncoalesced), so that one request of a warp
//          touches up to 16 times as many sectors, and relies on the cache to keep them.
// Cost     still one atomic per element; up to 16 times the sectors.
// Limits   f32 and u8, bins of equal width.
// Source   D. Kirk and W. Hwu, Programming Massively Parallel Processors, chapter on histograms.
#include "rung/ops/histogram/cuda/detail/histogram.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

constexpr int threads = 256;
constexpr int elements_per_thread = 16;

template <class T, class Bins>
__global__ void __launch_bounds__(threads)
    histogram_coarsened_contiguous(Elements<T> x, Bins bins, Counts counts) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const std::int64_t begin = thread * elements_per_thread;
  for (std::int64_t i = begin; i < begin + elements_per_thread && i < x.size(); ++i) {
    const std::int32_t bin = bins(x[i]);
    if (bin >= 0) counts.add(bin, 1);
  }
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  visit_taught(args, [&]<class T, class Bins>(const Elements<T>& x, const Bins& bins) {
    launch(context,
           {.grid = ceil_div(args.size(), threads * elements_per_thread), .block = threads},
           histogram_coarsened_contiguous<T, Bins>, x, bins, Counts::make(args));
  });
}

const Rung<Histogram> self{{.name = "coarsened_contiguous",
                            .step = 20,
                            .after = "global_atomics",
                            .backend = device_backend,
                            .teaching = true,
                            .supports = supports_taught,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run}};
}  // namespace
}  // namespace rung
