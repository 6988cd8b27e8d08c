// SPDX-License-Identifier: Apache-2.0
// histogram / multi-copy, vectorised
//
// Idea     as many copies of the table as 48 KiB hold, up to one a lane; 16 bytes a load, two loads
//          in flight a thread. Bytes are always counted as 256 values, 32 copies, whatever the
//          bins: a value's bin is looked up once, at the end.
// Changes  against lane_private: wide loads; fewer copies where bins are many, so that lanes meet
//          now and then instead of not fitting.
// Cost     x once. A byte costs a shift, a masked or and an atomic addition on shared memory in one
//          turn: 32 bytes a cycle and multiprocessor at best, where memory delivers 19 (an estimate
//          for H200).
// Limits   contiguous x; up to 12288 bins of equal width, any number and any edges for u8.
// Tried    -  (not measured on a GPU yet)
// Source   J. Gomez-Luna et al., "An optimized approach to histogram computation on GPU", 2013
#include "rung/ops/histogram/cuda_walk.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

struct Tuning {
  int threads;
  int unroll;       // packs of 16 bytes in flight a thread
  int byte_unroll;  // for u8
  std::int32_t table_words;
};
// 48 KiB a block, for three blocks a multiprocessor: 48 KiB of loads in flight. Bytes take 32 KiB
// and fewer registers, for four blocks: 32 KiB in flight, where latency times bandwidth is some 25.
constexpr Tuning tuning{.threads = 512, .unroll = 2, .byte_unroll = 1, .table_words = 12288};
constexpr std::int64_t least_bytes_per_block = 16 << 10;
constexpr int byte_values = 256;

/// One of the two ways in which bytes find their bins, chosen at run time: it is done 256 times.
struct ByteBins {
  WholeBins whole;
  EdgeBins<std::int64_t> edges;
  bool even;

  __device__ __forceinline__ std::int32_t operator()(int value) const {
    return even ? whole(value) : edges(value);
  }
};

__global__ void __launch_bounds__(tuning.threads, 4)
    histogram_multi_copy_bytes(DenseElements<std::uint8_t> x, ByteBins bins, Counts counts) {
  unsigned* const table = cleared_table(byte_values * warp_size);
  // Byte offsets: a value's row has 128 bytes, a lane's column 4. Shifted into place, masked and
  // joined with the lane in one instruction; the table's address is a constant.
  const unsigned column = static_cast<unsigned>(lane_of_thread()) * 4;
  constexpr unsigned row_mask = (byte_values - 1) << 7;
  const auto add = [&](unsigned row) {
    atomicAdd(
        reinterpret_cast<unsigned*>(reinterpret_cast<char*>(table) + ((row & row_mask) | column)),
        1u);
  };
  for_each_pack<tuning.byte_unroll>(
      x,
      [&](const Pack<std::uint8_t, 16>& values, bool valid) {
        if (!valid) return;
        const auto words = __builtin_bit_cast(Pack<unsigned, 4>, values);
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
  const int value = static_cast<int>(threadIdx.x);
  if (value >= byte_values) return;
  const unsigned sum = sum_of_copies(table, value, 5);
  const std::int32_t bin = sum != 0 ? bins(value) : -1;
  if (bin >= 0) counts.add(bin, sum);
}

template <class T, class Bins>
__global__ void __launch_bounds__(tuning.threads, 3)
    histogram_multi_copy(DenseElements<T> x, Bins bins, Counts counts, int shift) {
  unsigned* const table = cleared_table(counts.bins << shift);
  // In bytes, so that a counter's address is one multiply-add.
  const unsigned row = sizeof(unsigned) << shift;
  const unsigned copy = static_cast<unsigned>(lane_of_thread()) * sizeof(unsigned) & (row - 1);
  const auto add = [&](T value) {
    const std::int32_t bin = bins(convert<typename Bins::Key>(value));
    if (bin < 0) return;
    char* const counter =
        reinterpret_cast<char*>(table) + (static_cast<unsigned>(bin) * row + copy);
    atomicAdd(reinterpret_cast<unsigned*>(counter), 1u);
  };
  for_each_pack<tuning.unroll>(
      x,
      [&](const Pack<T, pack_size<T>>& values, bool valid) {
        if (!valid) return;
#pragma unroll
        for (int i = 0; i < pack_size<T>; ++i) add(values[i]);
      },
      add);
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

double estimate(const Histogram::Args& args, const Context& context) {
  return seconds(args, context, args.x.dtype == DType::u8 ? 4e12 : 1.2e12);
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  const auto launch_walk = [&](auto kernel, std::int32_t words, auto... arguments) {
    const std::size_t bytes = static_cast<std::size_t>(words) * sizeof(unsigned);
    const auto least = least_bytes_per_block / static_cast<std::int64_t>(size_of(args.x.dtype));
    const std::int64_t blocks =
        walking_blocks(context, args.size(), least, kernel, tuning.threads, bytes);
    launch(context,
           {.grid = blocks,
            .block = tuning.threads,
            .shared_bytes = bytes,
            .dependent = counts_cleared_ahead(args, context)},
           kernel, arguments...);
  };
  const Counts counts = Counts::make(args);
  if (args.x.dtype == DType::u8) {
    ByteBins bins{{}, {}, args.even()};
    if (args.even()) {
      bins.whole = WholeBins::make(args);
    } else {
      bins.edges = EdgeBins<std::int64_t>::make(args);
    }
    return launch_walk(histogram_multi_copy_bytes, byte_values * warp_size,
                       DenseElements<std::uint8_t>::make(args), bins, counts);
  }
  int shift = 0;
  while (shift < 5 && counts.bins << (shift + 1) <= tuning.table_words) ++shift;
  visit_even(args, [&]<class T, class Bins>(const Bins& bins) {
    launch_walk(histogram_multi_copy<T, Bins>, counts.bins << shift, DenseElements<T>::make(args),
                bins, counts, shift);
  });
}

const Rung<Histogram> self{{.name = "multi_copy_vectorised",
                            .step = 70,
                            .after = "lane_private",
                            .backend = device_backend,
                            .supports = supports,
                            .estimate = estimate,
                            .run = run}};
}  // namespace
}  // namespace rung
