// SPDX-License-Identifier: Apache-2.0
// histogram / guided edges
//
// Idea     for bins with given edges, a guide table in shared memory beside the edges: it divides
//          their range into equal cells and lists the edges in each cell. Finding a value's
//          cell takes a subtraction and a product; only that cell's edges are searched.
// Changes  against shared_privatized: a search of one or two steps in shared memory, instead of
//          log2(bins) steps in global memory.
// Cost     two words of the guide, one or two edges and a shared-memory atomic per element. Each
//          block first builds the guide, with one binary search per cell.
// Limits   edges, guide and table must fit shared memory: about 19000 bins of f64, 28000 of f32.
//          Edges clustered in one cell are found by binary search.
// Source   H. Chen and Y. Asau 1974, On generating random variates from an empirical distribution
//          (guide table).
#include <bit>

#include "rung/ops/histogram/cuda/detail/histogram.hpp"

namespace rung {
namespace {
using namespace histogram_cuda;

constexpr int threads = 512;
constexpr int loads_in_flight = 4;
constexpr int min_elements_per_thread = 8;
constexpr int max_cells = 8192;
constexpr int min_cells = 32;

/// Map of values between the first and the last edge to cells. The search needs only
/// monotonicity, and each operation rounds monotonically.
template <class Key>
struct Cells {
  Key low;
  Key scale;
  int count;

  __device__ __forceinline__ Cells(Key first, Key last, int cells) : low(first), count(cells) {
    scale = static_cast<Key>(cells) / (last - first);  // 0 if the range overflows
  }
  __device__ __forceinline__ int operator()(Key x) const {
    const Key at = (x - low) * scale;
    if (!(at > 0)) return 0;  // also NaN, if the first edge equals the last
    return at < static_cast<Key>(count) ? static_cast<int>(at) : count - 1;
  }
};
/// Map of integers to cells, by a shift.
template <>
struct Cells<std::int64_t> {
  std::uint64_t low;
  int shift;
  int count;

  __device__ __forceinline__ Cells(std::int64_t first, std::int64_t last, int cells)
      : low(static_cast<std::uint64_t>(first)), shift(0), count(cells) {
    std::uint64_t span = static_cast<std::uint64_t>(last) - low;
    for (; span >= static_cast<std::uint64_t>(cells); span >>= 1) ++shift;
  }
  __device__ __forceinline__ int operator()(std::int64_t x) const {
    const std::uint64_t cell = (static_cast<std::uint64_t>(x) - low) >> shift;
    return cell < static_cast<std::uint64_t>(count) ? static_cast<int>(cell) : count - 1;
  }
};

/// Returns the first index of [begin, end) for which `holds` is true, else end; `holds` must be
/// monotonic.
template <class F>
__device__ __forceinline__ int first_of(int begin, int end, F&& holds) {
  for (int count = end - begin; count > 0;) {
    const int half = count / 2;
    if (holds(begin + half)) {
      count = half;
    } else {
      begin += half + 1;
      count -= half + 1;
    }
  }
  return begin;
}

template <class T>
__global__ void __launch_bounds__(threads)
    histogram_guided_edges(Elements<T> x, EdgeBins<BinKey<T>> bins, Counts counts, int cells) {
  using Key = BinKey<T>;
  Key* const edges = &shared<Key>();
  auto* const table = reinterpret_cast<unsigned*>(edges + bins.bins + 1);
  auto* const guide = reinterpret_cast<int*>(table + bins.bins);  // the first edge of each cell
  for (int i = static_cast<int>(threadIdx.x); i <= bins.bins; i += threads) {
    edges[i] = bins.edges[i * bins.stride];
    if (i < bins.bins) table[i] = 0;
  }
  __syncthreads();
  const Key low = edges[0];
  const Key high = edges[bins.bins];
  const Cells<Key> cell_of(low, high, cells);
  for (int cell = static_cast<int>(threadIdx.x); cell <= cells; cell += threads) {
    guide[cell] = first_of(0, bins.bins, [&](int i) { return cell_of(edges[i]) >= cell; });
  }
  __syncthreads();
  for_each_element<loads_in_flight>(x, [&](Key value) {
    if (!(value >= low && value <= high)) return;
    const int cell = cell_of(value);
    // Edges of earlier cells are below the value, edges of later cells above it. Finds the last bin
    // whose lower edge is not above the value.
    const int bin =
        first_of(guide[cell], guide[cell + 1], [&](int i) { return !(edges[i] <= value); }) - 1;
    if (bin >= 0) atomicAdd(table + bin, 1u);
  });
  __syncthreads();
  for (int bin = static_cast<int>(threadIdx.x); bin < bins.bins; bin += threads) {
    if (table[bin] != 0) counts.add(bin, table[bin]);
  }
}

/// Number of cells, and bytes of shared memory. There are as many cells as bins, rounded up to a
/// power of two, or as many as fit beside edges and table.
struct GuidePlan {
  int cells = 0;
  std::size_t shared_bytes = 0;
};
GuidePlan plan_of(const Histogram::Args& args, const Context& context) {
  const auto bins = static_cast<std::size_t>(args.bins());
  const std::size_t key = size_of(key_dtype(args.x.dtype));
  const std::size_t fixed = (bins + 1) * key + bins * sizeof(unsigned);
  GuidePlan plan{.cells = min_cells};
  while (plan.cells < max_cells && static_cast<std::size_t>(plan.cells) < bins) plan.cells *= 2;
  for (;; plan.cells /= 2) {
    plan.shared_bytes = fixed + (static_cast<std::size_t>(plan.cells) + 1) * sizeof(int);
    if (plan.shared_bytes <= context.info().shared_per_block || plan.cells <= min_cells) {
      return plan;
    }
  }
}

Support supports(const Histogram::Args& args, const Context& context) {
  if (args.even()) return unsupported("only bins with edges of their own");
  if (const Support table = require_table(args, context, 1); !table) return table;
  return plan_of(args, context).shared_bytes <= context.info().shared_per_block
             ? supported
             : unsupported("edges of that many bins do not fit shared memory");
}

/// Calls f.template operator()<T>(blocks) with the launch's grid.
template <class F>
auto with_blocks(const Histogram::Args& args, const Context& context, const GuidePlan& plan,
                 const F& f) {
  return visit_values(args.x.dtype, [&]<class T>() {
    return f.template operator()<T>(
        walking_blocks(context, args.size(), threads * min_elements_per_thread,
                       histogram_guided_edges<T>, threads, plan.shared_bytes));
  });
}

Work work(const Histogram::Args& args, const Context& context) {
  const GuidePlan plan = plan_of(args, context);
  return with_blocks(args, context, plan, [&]<class T>(std::int64_t blocks) {
    return walk_work(args, blocks, threads, args.bins() + plan.cells * searches(args) / 2);
  });
}

void run(const Histogram::Args& args, Context& context) {
  clear_counts(args, context);
  const GuidePlan plan = plan_of(args, context);
  with_blocks(args, context, plan, [&]<class T>(std::int64_t blocks) {
    launch(context, {.grid = blocks, .block = threads, .shared_bytes = plan.shared_bytes},
           histogram_guided_edges<T>, Elements<T>::make(args), EdgeBins<BinKey<T>>::make(args),
           Counts::make(args), plan.cells);
  });
}

const Rung<Histogram> self{{.name = "guided_edges",
                            .step = 45,
                            .after = "shared_privatized",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};
}  // namespace
}  // namespace rung
