// SPDX-License-Identifier: Apache-2.0
// reduce / general
//
// Idea     any call in one launch: the threads per result scale with its terms, from one lane to
//          blocks all over the device. Elements are loaded one by one at any strides, and widened
//          to f64 or to 64-bit integers.
// Changes  against atomic_finish: every type, operation, axis, stride and segment. Blocks that
//          share a result store their states in memory; the last block to finish, found by a ticket
//          counter, joins them in the order of the elements. A second launch is not needed, and
//          results are reproducible bit for bit.
// Cost     one element per load; f64 additions (six per element for two-sum, which all floating
//          sums use).
// Limits   every valid call. Elements of 1 and 2 bytes waste most of a load's width.
// Source   NVIDIA, threadFenceReduction sample (ticket).
#include "rung/core/tensor.hpp"
#include "rung/device/block_work.hpp"
#include "rung/ops/reduce/cuda/detail/any_elements.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

namespace {

constexpr std::int64_t ticket_words = max_tickets;
constexpr std::int64_t packet_words = max_packets * 8;
constexpr std::int64_t launch_words = block_threads;  // two would suffice

__global__ void reduce_zero(unsigned* words) {
  const std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  words[i] = i == ticket_words + 2 * packet_words ? 1 : 0;  // launch number of the next launch
}

}  // namespace

Zeroed zeroed_of(Context& context) {
  struct Memory {
    Tensor words;
  };
  Tensor& words = context.memo<Memory>().words;
  if (words.ref().data == nullptr) {
    constexpr std::int64_t count = ticket_words + 2 * packet_words + launch_words;
    words = Tensor(DType::i32, Extents{count}, context.device());
    launch(context, {.grid = count / block_threads, .block = block_threads}, reduce_zero,
           words.data<unsigned>());
  }
  unsigned* const tickets = words.data<unsigned>();
  unsigned* const packets = tickets + ticket_words;
  unsigned* const marked = packets + packet_words;
  return {tickets, packets, marked, reinterpret_cast<std::uint64_t*>(marked + packet_words)};
}

namespace {

template <class F>
struct FinishScratch {
  WarpValues<typename F::State, block_threads> warps;
  int is_last;
};

/// Reduces elements of any type, which is looked up at run time: one kernel per fold serves all
/// types.
template <class F>
__global__ void __launch_bounds__(block_threads)
    reduce_general(Elements elements, Places places, Sharing sharing, Result to, F fold) {
  using State = typename F::State;
  using W = typename F::Element;
  const auto join = [&](const State& a, const State& b) { return fold.join(a, b); };
  auto& scratch = shared<FinishScratch<F>>();
  const int t = static_cast<int>(threadIdx.x);
  const int group = sharing.group;
  const int splits = sharing.splits;
  const int a_block = block_threads / group;  // groups per block
  const Index units = sharing.results * splits;
  for (Index first = Index{blockIdx.x} * a_block; first < units;
       first += Index{gridDim.x} * a_block) {
    const Index unit = first + t / group;
    const bool exists = unit < units;
    const Index result = splits == 1 ? unit : unit / splits;
    State state = fold.identity();
    const Places::ResultLocation place = places.of(exists ? result : 0);
    if (exists) {
      const Index split = splits == 1 ? 0 : unit - result * splits;
      const Index step = Index{splits} * group;
      for (Index i = split * group + t % group; i < place.count; i += step) {
        const Index at = place.x + elements.terms.offset(place.first + i);
        fold.take(state, Pack<W, 1>{{load_any<W>(elements, at)}}, i);
      }
    }
    if (group < block_threads) {
      state = join_lanes(state, group, join);
    } else {
      // A loop, which makes the compiler inline block_reduce only once.
      bool is_last = splits == 1;
      for (;;) {
        state = block_reduce<block_threads>(state, join, fold.identity(), scratch.warps);
        if (is_last) break;
        State* states = static_cast<State*>(sharing.states);
        if (t == 0) states[unit] = state;
        is_last = is_last_block(sharing.tickets + result, splits, scratch.is_last);
        if (!is_last) break;
        state = fold.identity();
        for (int s = t; s < splits; s += block_threads) {
          state = join(state, states[result * splits + s]);
        }
      }
      if (!is_last) continue;
    }
    if (exists && t % group == 0) store_state<F>(to, place.y, state, place.count);
  }
}

/// Returns the partition for results of `packs` loads each, of which a thread keeps `unrolled` in
/// flight.
inline Sharing share_out(Index results, Index packs, int unrolled, Index resident) {
  Sharing sharing;
  sharing.results = results;
  // At most a warp per result, with up to 16 loads per lane if results are many, else up to 2.
  const bool many = results * 2 >= resident;
  if (packs <= (many ? 512 : 64)) {
    sharing.group = 1;
    while (sharing.group < 32 && sharing.group * 2 < packs) sharing.group *= 2;
    return sharing;
  }
  if (results <= max_tickets && results < resident) {
    const Index useful = packs / (Index{block_threads} * unrolled);
    sharing.splits = static_cast<int>(larger<Index>(smaller(resident / results, useful), 1));
  }
  return sharing;
}

/// Allocates the states of blocks that share results.
template <class State>
void provide(Sharing& sharing, Context& context) {
  if (sharing.splits == 1) return;
  sharing.tickets = tickets_of(context);
  sharing.states = context.workspace(static_cast<std::size_t>(sharing.results) *
                                     static_cast<std::size_t>(sharing.splits) * sizeof(State));
}

template <class F>
Sharing sharing_of(const Reduce::Args& args, const Context& context) {
  return share_out(
      args.results(), average_terms(args), 4,
      resident_blocks(context, reduce_general<F>, block_threads, sizeof(FinishScratch<F>)));
}

template <class F>
void run_fold(const Reduce::Args& args, Context& context, const F& fold) {
  Sharing sharing = sharing_of<F>(args, context);
  if (sharing.results == 0) return;
  provide<typename F::State>(sharing, context);
  launch(
      context,
      {.grid = sharing.blocks(), .block = block_threads, .shared_bytes = sizeof(FinishScratch<F>)},
      reduce_general<F>, Elements{args.x.data, args.x.dtype, args.terms}, places_of(args), sharing,
      result_of(args), fold);
}

/// Calls f(fold) with the fold of args on the widest type of x's kind.
template <class F>
void with_fold(const Reduce::Args& args, const F& f) {
  if (is_floating(args.x.dtype)) {
    visit_wide_folds<double>(args, f);
  } else {
    visit_wide_folds<std::int64_t>(args, f);
  }
}

Work work(const Reduce::Args& args, const Context& context) {
  Sharing sharing;
  with_fold(args, [&]<class F>(const F&) { sharing = sharing_of<F>(args, context); });
  const bool contiguous = args.terms.is_contiguous() || args.terms.size() == 1;
  return block_work(sharing.blocks(), block_threads,
                    ceil_div(average_terms(args), Index{sharing.splits} * sharing.group),
                    is_floating(args.x.dtype) ? contiguous ? "" : "strided"
                    : contiguous              ? "whole numbers"
                                              : "whole numbers strided");
}

void run(const Reduce::Args& args, Context& context) {
  with_fold(args, [&](const auto& fold) { run_fold(args, context, fold); });
}

const Rung<Reduce> self{{.name = "general",
                         .step = 115,
                         .after = "atomic_finish",
                         .backend = device_backend,
                         .passes = {.loads = 1, .stores = 1},
                         .work = work,
                         .run = run}};

}  // namespace
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
