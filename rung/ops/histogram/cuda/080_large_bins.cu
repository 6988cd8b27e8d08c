// SPDX-License-Identifier: Apache-2.0
// histogram / large bins
//
// Idea     one table per block in all available shared memory: 58112 bins on an H200. More bins are
//          divided into slices: each block counts the values of one slice, and blocks of different
//          slices read the same part of x at about the same time, so that L2 serves most loads.
//          Beyond eight slices the counts stay in L2, with fewer atomics: a bin that is frequent in
//          a sample of 32 elements is counted in registers, and the first lane of a warp counts all
//          lanes of the warp that have its bin.
// Changes  against multi_copy_vectorized: a single copy of the table, 4.7 times as many bins.
// Cost     x is read once per slice. Each block adds its table to counts: 132 blocks of 50000 bins
//          each make 6.6 million coalesced atomics on L2.
// Limits   contiguous x; bins of equal width; not u8, which has 256 values.
#include "rung/core/bounds.hpp"
#include "rung/ops/histogram/cuda/detail/walk.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

struct Tuning {
  int threads;
  int in_flight;  // packs of 16 bytes per thread
  int max_slices;
};
// A block occupies an SM alone, so it must be large.
constexpr Tuning tuning{.threads = 1024, .in_flight = 4, .max_slices = 8};
constexpr std::int64_t min_elements_per_block = 16 << 10;

/// Counts slice blockIdx.y: `width` bins from blockIdx.y * width on.
template <class T, class Bins>
__global__ void __launch_bounds__(tuning.threads, 1)
    histogram_large_sliced(DenseElements<T> x, Bins bins, Counts counts, int width) {
  PackWalk<tuning.in_flight, T> walk(x);
  const int first = static_cast<int>(blockIdx.y) * width;
  const int here = min(width, counts.bins - first);
  const unsigned* const table = cleared_table(here);
  const std::uint32_t base = shared_address(table);
  walk.for_each_element([&](T value) {
    const CheckedBin checked = checked_bin(bins, convert<typename Bins::Key>(value));
    // bins of lower slices wrap to large numbers
    const unsigned slot = checked.bin - static_cast<unsigned>(first);
    ptx::shared_add_if(static_cast<bool>(checked.inside & (slot < static_cast<unsigned>(here))),
                       base + slot * sizeof(unsigned), 1);
  });
  __syncthreads();
  wait_for_cleared_counts();
  for (int slot = static_cast<int>(threadIdx.x); slot < here; slot += tuning.threads) {
    if (table[slot] != 0) counts.add(first + slot, table[slot]);
  }
}

/// Returns the most frequent bin of 32 elements spread over x. Called by all lanes of a warp.
template <class T, class Bins>
__device__ __forceinline__ std::int32_t frequent_bin(const DenseElements<T>& x, const Bins& bins) {
  const int lane = lane_of_thread();
  const std::int32_t bin = bins(convert<typename Bins::Key>(x.data[x.size / warp_size * lane]));
  const int times = __popc(__match_any_sync(all_lanes, bin));
  const int most = __reduce_max_sync(all_lanes, times);
  const unsigned holders = __ballot_sync(all_lanes, times == most);
  return shuffle(bin, __ffs(static_cast<int>(holders)) - 1);
}

template <class T, class Bins>
__global__ void __launch_bounds__(tuning.threads)
    histogram_large_global(DenseElements<T> x, Bins bins, Counts counts) {
  wait_for_cleared_counts();
  const std::int32_t frequent = frequent_bin(x, bins);
  const int lane = lane_of_thread();
  unsigned long long frequent_count = 0;
  PackWalk<1, T> walk(x);
  walk.for_each(
      [&](const typename PackWalk<1, T>::Words& words, bool valid) {
        const auto values = __builtin_bit_cast(Pack<T, vector_width<T>>, words);
#pragma unroll
        for (int i = 0; i < vector_width<T>; ++i) {
          std::int32_t bin = valid ? bins(convert<typename Bins::Key>(values[i])) : -1;
          if (bin == frequent && valid) {
            ++frequent_count;
            bin = -1;
          }
          const std::int32_t leading = shuffle(bin, 0);
          const unsigned same = __ballot_sync(all_lanes, bin == leading);
          if (bin >= 0 && (lane == 0 || bin != leading)) {
            counts.add(bin, lane == 0 ? __popc(same) : 1);
          }
        }
      },
      [&](T value) {
        const std::int32_t bin = bins(convert<typename Bins::Key>(value));
        if (bin >= 0) counts.add(bin, 1);
      });
  const auto add = [](unsigned long long a, unsigned long long b) { return a + b; };
  frequent_count = warp_reduce(frequent_count, add);
  if (lane == 0 && frequent >= 0 && frequent_count != 0) counts.add(frequent, frequent_count);
}

std::int64_t slices_of(const Histogram::Args& args, const Context& context) {
  const auto room = static_cast<std::int64_t>(context.info().shared_per_block / sizeof(unsigned));
  return ceil_div(args.bins(), room);
}

Support supports(const Histogram::Args& args, const Context&) {
  if (const Support dense = require_dense(args); !dense) return dense;
  if (args.size() == 0) return unsupported("x is empty");
  if (args.x.dtype == DType::u8) return unsupported("u8 has no more than 256 values");
  return require_even(args);
}

/// Returns the blocks along x per slice: as many as keep all slices resident together, since one
/// block more would start a second wave; but at least so many that no 32-bit counter can overflow
/// (each slice reads all of x).
std::int64_t along_of(const Histogram::Args& args, std::int64_t blocks, std::int64_t slices) {
  return larger(larger<std::int64_t>(blocks / slices, 1),
                ceil_div(args.size(), std::int64_t{1} << 31));
}
/// Calls f.template operator()<T>(kernel, blocks, bytes, bins) with `sliced` or `global`.
template <class Sliced, class Global>
auto with_grid(const Histogram::Args& args, const Context& context, const Sliced& sliced,
               const Global& global) {
  const std::int64_t slices = slices_of(args, context);
  const auto width = static_cast<int>(ceil_div(args.bins(), slices));
  const std::size_t bytes = static_cast<std::size_t>(width) * sizeof(unsigned);
  const auto blocks_of = [&](auto kernel, std::size_t shared_bytes) {
    return walking_blocks(context, args.size(), min_elements_per_block, kernel, tuning.threads,
                          shared_bytes);
  };
  return visit_even(args, [&]<class T, class Bins>(const Bins& bins) {
    if (slices > tuning.max_slices) {
      const auto kernel = histogram_large_global<T, Bins>;
      return global.template operator()<T>(kernel, blocks_of(kernel, 0), bins);
    } else {
      const auto kernel = histogram_large_sliced<T, Bins>;
      const std::int64_t along = along_of(args, blocks_of(kernel, bytes), slices);
      return sliced.template operator()<T>(kernel, along, slices, width, bins);
    }
  });
}

Work work(const Histogram::Args& args, const Context& context) {
  return with_grid(
      args, context,
      [&]<class T>(auto, std::int64_t along, std::int64_t slices, int width, const auto&) {
        return walk_work(args, along * slices, tuning.threads, width, along);
      },
      [&]<class T>(auto, std::int64_t blocks, const auto&) {
        return global_work(args, blocks, tuning.threads);
      });
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  const Counts counts = Counts::make(args);
  const bool dependent = counts_cleared_ahead(args, context);
  with_grid(
      args, context,
      [&]<class T>(auto kernel, std::int64_t along, std::int64_t slices, int width,
                   const auto& bins) {
        launch(context,
               {.grid = {along, slices},
                .block = tuning.threads,
                .shared_bytes = static_cast<std::size_t>(width) * sizeof(unsigned),
                .dependent = dependent},
               kernel, DenseElements<T>::make(args), bins, counts, width);
      },
      [&]<class T>(auto kernel, std::int64_t blocks, const auto& bins) {
        launch(context, {.grid = blocks, .block = tuning.threads, .dependent = dependent}, kernel,
               DenseElements<T>::make(args), bins, counts);
      });
}

const Rung<Histogram> self{{.name = "large_bins",
                            .step = 80,
                            .after = "multi_copy_vectorized",
                            .backend = device_backend,
                            .supports = supports,
                            .work = work,
                            .run = run}};
}  // namespace
}  // namespace rung
