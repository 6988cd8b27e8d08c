// SPDX-License-Identifier: Apache-2.0
// reduce / adjacent results
//
// Idea     general for columns: neighboring lanes have neighboring results, whose elements are
//          adjacent; up to eight shares of a block divide their terms, with four loads in flight.
//          Long columns are divided among blocks, as in general.
// Changes  against general, where neighboring lanes share a result: there, a warp's load down a
//          column touches a sector per element.
// Cost     one element per load, in full sectors; f64 or 64-bit operations.
// Limits   results whose elements are adjacent. For floating types only products and index
//          searches: faster rungs have the other folds.
#include "rung/device/block_work.hpp"
#include "rung/ops/reduce/cuda/detail/any_elements.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

namespace {

constexpr int max_shares = 8;
constexpr int loads = 4;

template <class F>
struct AdjacentScratch {
  typename F::State of_thread[block_threads];
  int is_last;
};

/// Combines the states of the block's shares of every result; returns them to the first share.
template <class F>
__device__ __forceinline__ typename F::State join_shares(const F& fold, AdjacentScratch<F>& scratch,
                                                         typename F::State state, int across) {
  if (across == block_threads) return state;
  const int thread = static_cast<int>(threadIdx.x);
  scratch.of_thread[thread] = state;
  __syncthreads();
  if (thread < across) {
    for (int i = thread + across; i < block_threads; i += across) {
      state = fold.join(state, scratch.of_thread[i]);
    }
  }
  __syncthreads();
  return state;
}

template <class F>
__global__ void __launch_bounds__(block_threads)
    reduce_adjacent_results(Elements elements, Places places, Sharing sharing, int across,
                            Result to, F fold) {
  using State = typename F::State;
  using W = typename F::Element;
  auto& scratch = shared<AdjacentScratch<F>>();
  const int shares = block_threads / across;
  const int share = static_cast<int>(threadIdx.x) / across;
  const int lane = static_cast<int>(threadIdx.x) - share * across;
  const Index tile = blockIdx.x;
  const Index split = blockIdx.y;
  const Index result = tile * across + lane;
  const bool exists = result < sharing.results;
  const Places::ResultLocation place = places.of(exists ? result : 0);
  const Index count = exists ? place.count : 0;
  const Index step = Index{sharing.splits} * shares;

  State state = fold.identity();
  Index i = split * shares + share;
  for (; i + (loads - 1) * step < count; i += loads * step) {
    W values[loads];
#pragma unroll
    for (int l = 0; l < loads; ++l) {
      values[l] = load_any<W>(elements, place.x + elements.terms.offset(i + l * step));
    }
#pragma unroll
    for (int l = 0; l < loads; ++l) fold.take(state, Pack<W, 1>{{values[l]}}, i + l * step);
  }
  for (; i < count; i += step) {
    const W value = load_any<W>(elements, place.x + elements.terms.offset(i));
    fold.take(state, Pack<W, 1>{{value}}, i);
  }
  state = join_shares(fold, scratch, state, across);

  if (sharing.splits > 1) {
    State* const states = static_cast<State*>(sharing.states) + tile * sharing.splits * across;
    if (share == 0) states[split * across + lane] = state;
    // The barrier orders every thread's writes before the ticket's release by one thread.
    __syncthreads();
    if (!is_last_block(sharing.tickets + tile, sharing.splits, scratch.is_last)) return;
    state = fold.identity();
    for (int s = share; s < sharing.splits; s += shares) {
      state = fold.join(state, states[Index{s} * across + lane]);
    }
    state = join_shares(fold, scratch, state, across);
  }
  if (exists && share == 0) store_state<F>(to, place.y, state, place.count);
}

/// Returns the results per block: with few terms, one thread folds all terms of a result.
int across_of(const Reduce::Args& args) {
  int shares = 1;
  while (shares < max_shares && args.terms.size() >= Index{16} * shares) shares *= 2;
  return block_threads / shares;
}

Sharing share_out(const Reduce::Args& args, const Context& context) {
  const int across = across_of(args);
  Sharing sharing;
  sharing.results = args.results();
  const Index tiles = ceil_div(sharing.results, Index{across});
  const Index resident = Index{4} * context.info().sms;
  if (tiles < resident && tiles <= max_tickets) {
    const Index useful = args.terms.size() / (Index{block_threads / across} * loads * 2);
    sharing.splits = static_cast<int>(
        clamped<Index>(resident / larger<Index>(tiles, 1), 1, larger<Index>(useful, 1)));
  }
  return sharing;
}

template <class F>
void run_fold(const Reduce::Args& args, Context& context, const F& fold) {
  Sharing sharing = share_out(args, context);
  if (sharing.results == 0) return;
  const int across = across_of(args);
  const Index tiles = ceil_div(sharing.results, Index{across});
  if (sharing.splits > 1) {
    sharing.tickets = tickets_of(context);
    sharing.states = context.workspace(static_cast<std::size_t>(tiles * across * sharing.splits) *
                                       sizeof(typename F::State));
  }
  launch(context,
         {.grid = {tiles, sharing.splits},
          .block = block_threads,
          .shared_bytes = sizeof(AdjacentScratch<F>)},
         reduce_adjacent_results<F>, Elements{args.x.data, args.x.dtype, args.terms},
         places_of(args), sharing, across, result_of(args), fold);
}

Support supports(const Reduce::Args& args, const Context&) {
  if (args.has_segments()) return unsupported("no segments");
  const int kept = args.kept.rank - 1;
  const bool adjacent = kept >= 0 && args.kept.shape[kept] > 1 && args.kept.strides[0][kept] == 1;
  if (!adjacent) return unsupported("results whose elements are adjacent");
  const bool sum = args.operation != Reduction::product && !args.is_arg();
  if (is_floating(args.x.dtype) && sum) return unsupported("sums and extremes of integers only");
  return args.results() <= Index{0x7fffffff} * (block_threads / max_shares)
             ? supported
             : unsupported("2^36 results");
}

Work work(const Reduce::Args& args, const Context& context) {
  const int across = across_of(args);
  const Sharing sharing = share_out(args, context);
  const Index run = args.kept.shape[args.kept.rank - 1];
  const Index run_bytes = run * static_cast<Index>(size_of(args.x.dtype));
  Work work = block_work(ceil_div(sharing.results, across) * sharing.splits, block_threads,
                         ceil_div(args.terms.size(), block_threads / across * sharing.splits),
                         is_floating(args.x.dtype) ? "floats" : "");
  work.bytes = args.terms.size() * (args.results() / run) * round_up(run_bytes, 32);
  return work;
}

void run(const Reduce::Args& args, Context& context) {
  const auto start = [&](const auto& fold) { run_fold(args, context, fold); };
  if (!is_floating(args.x.dtype)) return visit_wide_folds<std::int64_t>(args, start);
  // Other folds of floating types are handled by faster rungs and not compiled.
  if (args.operation == Reduction::product) return start(ProductFold<double>{});
  start(PositionFold<double>{
      Flip{reduce_fold::fold_of(args.operation) == reduce_fold::Fold::greatest}});
}

const Rung<Reduce> self{{.name = "adjacent_results",
                         .after = "general",
                         .backend = device_backend,
                         .supports = supports,
                         .passes = {.loads = 1, .stores = 1},
                         .work = work,
                         .run = run}};

}  // namespace
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
