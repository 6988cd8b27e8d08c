// SPDX-License-Identifier: Apache-2.0
// histogram / lane-private
//
// Idea     each of a warp's 32 lanes has a table of its own, and the tables are interleaved: bin b
//          of lane l is word 32 b + l. All counters of a lane are in one bank.
// Changes  against shared_privatized: no two lanes of a warp ever conflict, in a bank or on a
//          counter: every request takes one pass for any values. Warps of a block share the tables,
//          so additions remain atomic.
// Cost     128 bytes of shared memory per bin; 32 counters per bin to add at the end.
// Limits   f32 and u8, bins of equal width; 1816 bins on an H200. Loads of single elements.
// Source   R. Shams and R. Kennedy, "Efficient histogram algorithms for NVIDIA CUDA compatible
//          devices", 2007 (columns per thread); C. Nugteren et al., "High performance predictable
//          histogramming on GPUs", 2011.
#include "rung/device/collectives.hpp"
#include "rung/ops/histogram/cuda/detail/histogram.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

constexpr int threads = 512;
constexpr int loads_in_flight = 4;
constexpr int min_elements_per_thread = 8;

template <class T, class Bins>
__global__ void __launch_bounds__(threads)
    histogram_lane_private(Elements<T> x, Bins bins, Counts counts) {
  unsigned* const table = cleared_table(counts.bins * warp_size);
  const int lane = lane_of_thread();
  for_each_element<loads_in_flight>(x, [&](BinKey<T> value) {
    const std::int32_t bin = bins(value);
    if (bin >= 0) atomicAdd(table + bin * warp_size + lane, 1u);
  });
  __syncthreads();
  // A warp adds the counters of a bin: its lanes read one row of the table without bank conflicts.
  for (int bin = static_cast<int>(threadIdx.x) / warp_size; bin < counts.bins;
       bin += threads / warp_size) {
    const unsigned sum =
        warp_reduce(table[bin * warp_size + lane], [](unsigned a, unsigned b) { return a + b; });
    if (lane == 0 && sum != 0) counts.add(bin, sum);
  }
}

Support supports(const Histogram::Args& args, const Context& context) {
  if (const Support taught = supports_taught(args, context); !taught) return taught;
  return require_table(args, context, warp_size);
}

std::int64_t words_of(const Histogram::Args& args) { return args.bins() * warp_size; }
/// Calls f(kernel, blocks, bytes, x, bins) with the launch's grid and shared memory.
template <class F>
void with_grid(const Histogram::Args& args, const Context& context, const F& f) {
  const std::size_t bytes = static_cast<std::size_t>(words_of(args)) * sizeof(unsigned);
  visit_taught(args, [&]<class T, class Bins>(const Elements<T>& x, const Bins& bins) {
    const auto kernel = histogram_lane_private<T, Bins>;
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

const Rung<Histogram> self{{.name = "lane_private",
                            .step = 60,
                            .after = "shared_privatized",
                            .backend = device_backend,
                            .teaching = true,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .run = run}};
}  // namespace
}  // namespace rung
