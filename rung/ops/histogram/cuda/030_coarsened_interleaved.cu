// SPDX-License-Identifier: Apache-2.0
// histogram / coarsened, interleaved
//
// Idea     as many threads as the device holds walk over x with a grid stride: thread t takes
//          elements t, t + threads, t + 2 threads ...
// Changes  against coarsened_contiguous: the lanes of a warp read neighboring elements in every
//          step, each sector once (coalesced).
// Cost     one atomic per element: bound by atomics, no longer by loads.
// Limits   f32 and u8, bins of equal width.
// Source   D. Kirk and W. Hwu, Programming Massively Parallel Processors, chapter on histograms.
#include "rung/ops/histogram/cuda/detail/histogram.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

constexpr int threads = 256;
constexpr int min_elements_per_thread = 4;

template <class T, class Bins>
__global__ void __launch_bounds__(threads)
    histogram_coarsened_interleaved(Elements<T> x, Bins bins, Counts counts) {
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < x.size(); i += step) {
    const std::int32_t bin = bins(x[i]);
    if (bin >= 0) counts.add(bin, 1);
  }
}

/// Calls f(kernel, blocks, x, bins) with the launch's grid.
template <class F>
void with_grid(const Histogram::Args& args, const Context& context, const F& f) {
  visit_taught(args, [&]<class T, class Bins>(const Elements<T>& x, const Bins& bins) {
    const auto kernel = histogram_coarsened_interleaved<T, Bins>;
    f(kernel,
      walking_blocks(context, args.size(), threads * min_elements_per_thread, kernel, threads, 0),
      x, bins);
  });
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  with_grid(args, context, [&](auto kernel, std::int64_t blocks, const auto& x, const auto& bins) {
    launch(context, {.grid = blocks, .block = threads}, kernel, x, bins, Counts::make(args));
  });
}

const Rung<Histogram> self{{.name = "coarsened_interleaved",
                            .step = 30,
                            .after = "coarsened_contiguous",
                            .backend = device_backend,
                            .teaching = true,
                            .supports = supports_taught,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run}};
}  // namespace
}  // namespace rung
