// SPDX-License-Identifier: Apache-2.0
// histogram / shared, privatized
//
// Idea     privatization: each block counts in a table of its own in shared memory, and adds it to
//          the counts at the end.
// Changes  against coarsened_interleaved: a shared-memory atomic per element, which contends within
//          a block, not the device; global atomics drop to one per bin and block.
// Cost     4 bytes of shared memory per bin. Lanes that hit one bank or one bin serialize: random
//          values in many bins take about 3.5 passes per warp.
// Limits   the table must fit shared memory: 58112 bins on an H200. Any type and strides, one
//          element per load.
// Source   J. Gomez-Luna et al., "An optimized approach to histogram computation on GPU", 2013.
#include <cmath>

#include "rung/ops/histogram/cuda/detail/histogram.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

constexpr int threads = 512;
constexpr int loads_in_flight = 4;
constexpr int min_elements_per_thread = 8;

template <class T, class Bins>
__global__ void __launch_bounds__(threads)
    histogram_shared_privatized(Elements<T> x, Bins bins, Counts counts) {
  unsigned* const table = cleared_table(counts.bins);
  for_each_element<loads_in_flight>(x, [&](BinKey<T> value) {
    const std::int32_t bin = bins(value);
    if (bin >= 0) atomicAdd(table + bin, 1u);
  });
  __syncthreads();
  for (int bin = static_cast<int>(threadIdx.x); bin < counts.bins; bin += threads) {
    if (table[bin] != 0) counts.add(bin, table[bin]);
  }
}

Support supports(const Histogram::Args& args, const Context& context) {
  return require_table(args, context, 1);
}

std::size_t table_bytes(const Histogram::Args& args) {
  return static_cast<std::size_t>(args.bins()) * sizeof(unsigned);
}
/// Calls f.template operator()<T>(kernel, blocks, bins) with the launch's grid.
template <class F>
auto with_grid(const Histogram::Args& args, const Context& context, const F& f) {
  return visit_values(args.x.dtype, [&]<class T>() {
    return with_bins<BinKey<T>>(args, [&]<class Bins>(const Bins& bins) {
      const auto kernel = histogram_shared_privatized<T, Bins>;
      return f.template operator()<T>(
          kernel,
          walking_blocks(context, args.size(), threads * min_elements_per_thread, kernel, threads,
                         table_bytes(args)),
          bins);
    });
  });
}

Work work(const Histogram::Args& args, const Context& context) {
  return with_grid(args, context, [&]<class T>(auto, std::int64_t blocks, const auto&) {
    return walk_work(args, blocks, threads, args.bins());
  });
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  with_grid(args, context, [&]<class T>(auto kernel, std::int64_t blocks, const auto& bins) {
    launch(context, {.grid = blocks, .block = threads, .shared_bytes = table_bytes(args)}, kernel,
           Elements<T>::make(args), bins, Counts::make(args));
  });
}

const Rung<Histogram> self{{.name = "shared_privatized",
                            .step = 40,
                            .after = "coarsened_interleaved",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};
}  // namespace
}  // namespace rung
