// SPDX-License-Identifier: Apache-2.0
// histogram / multi-copy, vectorized
//
// Idea     as many copies of the table as fit 48 KiB, up to one per lane; 16-byte loads, four per
//          thread always in flight. Bytes are always counted as 256 values in 32 copies, for any
//          bins: a value's bin is looked up once, at the end.
// Changes  against lane_private: wide loads; fewer copies for more bins, at the price of some
//          conflicts between lanes.
// Cost     x is read once. A byte takes a shift, a masked OR, an addition and a shared-memory
//          atomic: 1.0 to 1.7 cycles per warp on an H200, so at least 19 bytes per cycle and SM,
//          while memory delivers 17.
// Limits   contiguous x; up to 12288 bins of equal width, any number and any edges for u8.
// Source   J. Gomez-Luna et al., "An optimized approach to histogram computation on GPU", 2013
#include "rung/ops/histogram/cuda/detail/walk.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

struct Tuning {
  int threads;
  int in_flight;  // packs of 16 bytes per thread
  std::int32_t table_words;
};
// One large block per SM has the fewest tables to clear and to add. 64 KiB are in flight; latency
// times bandwidth is about 25 KiB.
constexpr Tuning tuning{.threads = 1024, .in_flight = 4, .table_words = 12288};
constexpr std::int64_t min_bytes_per_block = 16 << 10;
constexpr int byte_values = 256;

/// The bin of a byte, by either formula, chosen at run time: it is evaluated only 256 times.
struct ByteBins {
  WholeBins whole;
  EdgeBins<std::int64_t> edges;
  bool even;

  __device__ __forceinline__ std::int32_t operator()(int value) const {
    return even ? whole(value) : edges(value);
  }
};

__global__ void __launch_bounds__(tuning.threads, 1)
    histogram_multi_copy_bytes(DenseElements<std::uint8_t> x, ByteBins bins, Counts counts) {
  using Walk = PackWalk<tuning.in_flight, std::uint8_t>;
  Walk walk(x);
  const unsigned* const table = cleared_table(byte_values * warp_size);
  // A value's row has 128 bytes, a lane's column 4: a byte is shifted into position, masked and
  // combined with the column in two instructions. The table starts at a multiple of 1024, but not
  // at 0.
  const std::uint32_t base = shared_address(table);
  const unsigned column = static_cast<unsigned>(lane_of_thread()) * 4;
  constexpr unsigned row_mask = (byte_values - 1) << 7;
  const auto add = [&](unsigned row) { ptx::shared_add(base + ((row & row_mask) | column), 1); };
  walk.for_each(
      [&](const Walk::Words& words, bool valid) {
        if (!valid) return;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          add(words[i] << 7);
          add(words[i] >> 1);
          add(words[i] >> 9);
          add(words[i] >> 17);
        }
      },
      [&](std::uint8_t value) { add(static_cast<unsigned>(value) << 7); });
  __syncthreads();
  wait_for_cleared_counts();
  // Neighboring threads divide a value's 32 copies.
  constexpr int shares = tuning.threads / byte_values;
  constexpr int copies = warp_size / shares;
  const int value = static_cast<int>(threadIdx.x) / shares;
  const int share = static_cast<int>(threadIdx.x) % shares;
  unsigned sum = 0;
#pragma unroll
  for (int copy = 0; copy < copies; ++copy) {
    sum += table[value * warp_size + (share * copies + copy + value) % warp_size];
  }
  sum = warp_reduce<shares>(sum, [](unsigned a, unsigned b) { return a + b; });
  const std::int32_t bin = share == 0 && sum != 0 ? bins(value) : -1;
  if (bin >= 0) counts.add(bin, sum);
}

template <class T, class Bins>
__global__ void __launch_bounds__(tuning.threads, 1)
    histogram_multi_copy(DenseElements<T> x, Bins bins, Counts counts, int shift) {
  PackWalk<tuning.in_flight, T> walk(x);
  // An extra bin for values outside: a conditional addition would be a branch.
  const unsigned* const table = cleared_table((counts.bins + 1) << shift);
  // Row pitch in bytes, so that a counter's address takes one multiply-add.
  const unsigned row = sizeof(unsigned) << shift;
  const unsigned copy = static_cast<unsigned>(lane_of_thread()) * sizeof(unsigned) & (row - 1);
  const std::uint32_t first = shared_address(table) + copy;
  walk.for_each_element([&](T value) {
    const CheckedBin checked = checked_bin(bins, convert<typename Bins::Key>(value));
    const unsigned bin = checked.inside ? checked.bin : static_cast<unsigned>(counts.bins);
    ptx::shared_add(first + bin * row, 1);
  });
  __syncthreads();
  wait_for_cleared_counts();
  for (int bin = static_cast<int>(threadIdx.x); bin < counts.bins; bin += tuning.threads) {
    const unsigned sum = sum_of_copies(table, bin, shift);
    if (sum != 0) counts.add(bin, sum);
  }
}

Support supports(const Histogram::Args& args, const Context&) {
  if (const Support dense = require_dense(args); !dense) return dense;
  if (args.x.dtype == DType::u8) return supported;
  if (const Support even = require_even(args); !even) return even;
  return args.bins() <= tuning.table_words ? supported : unsupported("more than 12288 bins");
}

/// Calls f(kernel, blocks, words, arguments...) with the launch's grid and table size.
template <class F>
auto with_grid(const Histogram::Args& args, const Context& context, const F& f) {
  const auto walk = [&](auto kernel, std::int32_t words, auto... arguments) {
    const auto least = min_bytes_per_block / static_cast<std::int64_t>(size_of(args.x.dtype));
    const std::size_t bytes = static_cast<std::size_t>(words) * sizeof(unsigned);
    return f(kernel, walking_blocks(context, args.size(), least, kernel, tuning.threads, bytes),
             words, arguments...);
  };
  const Counts counts = Counts::make(args);
  if (args.x.dtype == DType::u8) {
    ByteBins bins{{}, {}, args.even()};
    if (args.even()) {
      bins.whole = WholeBins::make(args);
    } else {
      bins.edges = EdgeBins<std::int64_t>::make(args);
    }
    return walk(histogram_multi_copy_bytes, byte_values * warp_size,
                DenseElements<std::uint8_t>::make(args), bins, counts);
  }
  int shift = 0;
  while (shift < 5 && counts.bins << (shift + 1) <= tuning.table_words) ++shift;
  const std::int32_t words = (counts.bins + 1) << shift;
  return visit_even(args, [&]<class T, class Bins>(const Bins& bins) {
    return walk(histogram_multi_copy<T, Bins>, words, DenseElements<T>::make(args), bins, counts,
                shift);
  });
}

Work work(const Histogram::Args& args, const Context& context) {
  return with_grid(args, context, [&](auto, std::int64_t blocks, std::int32_t words, auto...) {
    return walk_work(args, blocks, tuning.threads, words);
  });
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  with_grid(args, context,
            [&](auto kernel, std::int64_t blocks, std::int32_t words, const auto&... arguments) {
              launch(context,
                     {.grid = blocks,
                      .block = tuning.threads,
                      .shared_bytes = static_cast<std::size_t>(words) * sizeof(unsigned),
                      .dependent = counts_cleared_ahead(args, context)},
                     kernel, arguments...);
            });
}

const Rung<Histogram> self{{.name = "multi_copy_vectorized",
                            .step = 70,
                            .after = "lane_private",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};
}  // namespace
}  // namespace rung
