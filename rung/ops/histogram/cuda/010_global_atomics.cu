// SPDX-License-Identifier: Apache-2.0
// histogram / global atomics
//
// Idea     a thread per element finds the element's bin and adds one to its count with an atomic,
//          since other threads may add to it at the same time.
// Changes  against cas_loop: the addition is one instruction, performed by L2, and no attempt
//          fails.
// Cost     one L2 atomic per element. Atomics on one count serialize: the fewer the bins, the
//          longer the queue; if all values fall into one bin, all atomics are serial.
// Limits   every valid call.
// Source   D. Kirk and W. Hwu, Programming Massively Parallel Processors, chapter on histograms.
#include "rung/ops/histogram/cuda/detail/histogram.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

constexpr int threads = 256;

template <class T, class Bins>
__global__ void __launch_bounds__(threads)
    histogram_global_atomics(Elements<T> x, Bins bins, Counts counts) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= x.size()) return;
  const std::int32_t bin = bins(x[i]);
  if (bin >= 0) counts.add(bin, 1);
}

Work work(const Histogram::Args& args, const Context&) {
  return global_work(args, ceil_div(args.size(), threads), threads);
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  visit_values(args.x.dtype, [&]<class T>() {
    with_bins<BinKey<T>>(args, [&]<class Bins>(const Bins& bins) {
      launch(context, {.grid = ceil_div(args.size(), threads), .block = threads},
             histogram_global_atomics<T, Bins>, Elements<T>::make(args), bins, Counts::make(args));
    });
  });
}

const Rung<Histogram> self{{.name = "global_atomics",
                            .step = 10,
                            .after = "cas_loop",
                            .backend = device_backend,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};
}  // namespace
}  // namespace rung
