// SPDX-License-Identifier: Apache-2.0
// histogram / aggregated runs
//
// Idea     aggregation: a thread keeps the bin of its last element and the length of the current
//          run; it adds to the table only when the bin changes.
// Changes  against shared_privatized: for repeated values, as in sorted data or an image's sky, one
//          atomic serves a whole run, and lanes no longer contend for one bin.
// Cost     a comparison and a branch per element, which gain nothing for random values.
// Limits   f32 and u8, bins of equal width; the table must fit shared memory. Data with 90 % of one
//          value has short runs, and lanes contend again.
// Source   D. Kirk and W. Hwu, Programming Massively Parallel Processors, chapter on histograms.
#include "rung/ops/histogram/cuda/detail/histogram.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

constexpr int threads = 512;
constexpr int loads_in_flight = 4;
constexpr int min_elements_per_thread = 8;

template <class T, class Bins>
__global__ void __launch_bounds__(threads)
    histogram_aggregated_runs(Elements<T> x, Bins bins, Counts counts) {
  unsigned* const table = cleared_table(counts.bins);
  std::int32_t last = -1;  // initially no run; runs of values outside are not counted
  unsigned length = 0;
  for_each_element<loads_in_flight>(x, [&](BinKey<T> value) {
    const std::int32_t bin = bins(value);
    if (bin != last) {
      if (last >= 0) atomicAdd(table + last, length);
      last = bin;
      length = 0;
    }
    ++length;
  });
  if (last >= 0) atomicAdd(table + last, length);
  __syncthreads();
  for (int bin = static_cast<int>(threadIdx.x); bin < counts.bins; bin += threads) {
    if (table[bin] != 0) counts.add(bin, table[bin]);
  }
}

Support supports(const Histogram::Args& args, const Context& context) {
  if (const Support taught = supports_taught(args, context); !taught) return taught;
  return require_table(args, context, 1);
}

std::int64_t words_of(const Histogram::Args& args) { return args.bins(); }
/// Calls f(kernel, blocks, bytes, x, bins) with the launch's grid and shared memory.
template <class F>
void with_grid(const Histogram::Args& args, const Context& context, const F& f) {
  const std::size_t bytes = static_cast<std::size_t>(words_of(args)) * sizeof(unsigned);
  visit_taught(args, [&]<class T, class Bins>(const Elements<T>& x, const Bins& bins) {
    const auto kernel = histogram_aggregated_runs<T, Bins>;
    const std::int64_t blocks = walking_blocks(
        context, args.size(), threads * min_elements_per_thread, kernel, threads, bytes);
    f(kernel, blocks, bytes, x, bins);
  });
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  with_grid(
      args, context,
      [&](auto kernel, std::int64_t blocks, std::size_t bytes, const auto& x, const auto& bins) {
        launch(context, {.grid = blocks, .block = threads, .shared_bytes = bytes}, kernel, x, bins,
               Counts::make(args));
      });
}

const Rung<Histogram> self{{.name = "aggregated_runs",
                            .step = 48,
                            .after = "shared_privatized",
                            .backend = device_backend,
                            .teaching = true,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run}};
}  // namespace
}  // namespace rung
