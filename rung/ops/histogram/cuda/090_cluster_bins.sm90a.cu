// SPDX-License-Identifier: Apache-2.0
// histogram / cluster bins
//
// Idea     one table per cluster of 2, 4 or 8 blocks, distributed over their shared memory: a block
//          reads its own part of x and adds to the block that holds the bin.
// Changes  against large_bins: up to 464896 bins with x read once, instead of once per slice.
// Cost     x is read once. In a cluster of n blocks, (n - 1) / n of the additions cross SMs.
// Limits   as large_bins; compute capability 9.0. Neighboring bins are distributed in groups of 32,
//          which spreads the center of a bell curve over blocks, while counts are still written in
//          whole lines.
// Source   NVIDIA, CUDA C++ Programming Guide, "Distributed shared memory" (its example).
#include "rung/core/bounds.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/ops/histogram/cuda/detail/walk.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

struct Tuning {
  int threads;
  int in_flight;   // packs of 16 bytes per thread
  int max_blocks;  // maximum per cluster
};
constexpr Tuning tuning{.threads = 1024, .in_flight = 2, .max_blocks = 8};
constexpr std::int64_t min_elements_per_block = 16 << 10;
constexpr int group_bits = 5;
constexpr int group = 1 << group_bits;

/// Distribution of bins: group g of 32 bins is counted by block g modulo the cluster size.
struct Deal {
  int cluster_bits;
  int slots;  // slots in a block's table

  static Deal make(std::int64_t bins, int cluster_bits) {
    const std::int64_t groups = ceil_div(bins, group << cluster_bits);
    return {cluster_bits, static_cast<int>(groups) * group};
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE int owner(int bin) const {
    return (bin >> group_bits) & ((1 << cluster_bits) - 1);
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE int slot(int bin) const {
    return (bin >> (group_bits + cluster_bits) << group_bits) | (bin & (group - 1));
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE int bin(int rank, int slot) const {
    const int number = (slot >> group_bits << cluster_bits) | rank;
    return (number << group_bits) | (slot & (group - 1));
  }
};

template <class T, class Bins>
__global__ void __launch_bounds__(tuning.threads)
    histogram_cluster_bins(DenseElements<T> x, Bins bins, Counts counts, Deal deal) {
  PackWalk<tuning.in_flight, T> walk(x);
  unsigned* const table = cleared_table(deal.slots);
  ptx::cluster_sync();  // every block runs and has cleared its table
  walk.for_each_element([&](T value) {
    const std::int32_t bin = bins(convert<typename Bins::Key>(value));
    if (bin >= 0) atomicAdd(ptx::cluster_map(table + deal.slot(bin), deal.owner(bin)), 1u);
  });
  ptx::cluster_sync();  // all additions are complete: a block now accesses only its own table
  wait_for_cleared_counts();
  const int rank = ptx::cluster_rank();
  for (int slot = static_cast<int>(threadIdx.x); slot < deal.slots; slot += tuning.threads) {
    const int bin = deal.bin(rank, slot);
    if (bin < counts.bins && table[slot] != 0) counts.add(bin, table[slot]);
  }
}

/// Returns log2 of the smallest cluster whose tables hold all bins; if none does, log2 of a cluster
/// of more than max_blocks.
int cluster_bits_for(const Histogram::Args& args, const Context& context) {
  const auto room = static_cast<std::int64_t>(context.info().shared_per_block / sizeof(unsigned));
  int bits = 1;
  while (1 << bits <= tuning.max_blocks && Deal::make(args.bins(), bits).slots > room) ++bits;
  return bits;
}

Support supports(const Histogram::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) return unsupported("needs compute capability 9.0");
  if (const Support dense = require_dense(args); !dense) return dense;
  if (args.x.dtype == DType::u8) return unsupported("u8 has no more than 256 values");
  if (const Support even = require_even(args); !even) return even;
  return 1 << cluster_bits_for(args, context) <= tuning.max_blocks
             ? supported
             : unsupported("a table of that many bins does not fit a cluster of 8 blocks");
}

/// Calls f.template operator()<T>(kernel, blocks, bins) with the launch's grid.
template <class F>
auto with_grid(const Histogram::Args& args, const Context& context, int bits, std::size_t bytes,
               const F& f) {
  return visit_even(args, [&]<class T, class Bins>(const Bins& bins) {
    const auto kernel = histogram_cluster_bins<T, Bins>;
    // A counter may count all elements that its cluster reads: at most 2^31.
    const std::int64_t blocks =
        walking_blocks(context, args.size() << bits, min_elements_per_block << bits, kernel,
                       tuning.threads, bytes);
    return f.template operator()<T>(kernel, larger<std::int64_t>(1, blocks >> bits) << bits, bins);
  });
}
std::size_t table_bytes(const Deal& deal) {
  return static_cast<std::size_t>(deal.slots) * sizeof(unsigned);
}

Work work(const Histogram::Args& args, const Context& context) {
  const int bits = cluster_bits_for(args, context);
  const Deal deal = Deal::make(args.bins(), bits);
  return with_grid(args, context, bits, table_bytes(deal),
                   [&]<class T>(auto, std::int64_t blocks, const auto&) {
                     return walk_work(args, blocks, tuning.threads, deal.slots);
                   });
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  const int bits = cluster_bits_for(args, context);
  const Deal deal = Deal::make(args.bins(), bits);
  with_grid(args, context, bits, table_bytes(deal),
            [&]<class T>(auto kernel, std::int64_t blocks, const auto& bins) {
              launch(context,
                     {.grid = blocks,
                      .block = tuning.threads,
                      .shared_bytes = table_bytes(deal),
                      .cluster = std::int64_t{1} << bits,
                      .dependent = counts_cleared_ahead(args, context)},
                     kernel, DenseElements<T>::make(args), bins, Counts::make(args), deal);
            });
}

const Rung<Histogram> self{{.name = "cluster_bins",
                            .step = 90,
                            .after = "large_bins",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};
}  // namespace
}  // namespace rung
