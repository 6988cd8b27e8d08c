// SPDX-License-Identifier: Apache-2.0
// reduce / single pass: the kernels for the plainest rows - one row, where latency decides, and
// many rows of full packs, a block each. They know nothing of places, segments and pieces: what a
// kernel that does works out before its first load, and holds in registers, costs one row of 4 MB a
// third of its time and long rows 3 %.
//
// Idea, Changes, Cost and Limits stand in 120_single_pass_last_block.cu,
// whose rung this is a part of.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/ops/reduce/cuda/120_single_pass_rows.cuh"

namespace rung::reduce_cuda::inline RUNG_TARGET {

inline constexpr int one_row_threads = 512;
inline constexpr int even_rows_threads = 256;

/// States of two words and squares need more registers than full SMs have.
template <class F>
inline constexpr bool is_light = sizeof(typename F::State) <= 8;
template <class T>
inline constexpr bool is_light<SquareFold<T>> = false;

/// The result of a block, in the first warp alone: the others are done sooner.
template <int Threads, class State, class Join>
__device__ __forceinline__ State first_warp_reduce(State state, const Join& join,
                                                   const State& identity,
                                                   WarpValues<State, Threads>& scratch) {
  constexpr int warps = WarpValues<State, Threads>::warps;
  state = warp_reduce(state, join);
  const int lane = lane_of_thread();
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  if (lane == 0) scratch.of_warp[warp] = state;
  __syncthreads();
  if (warp == 0) {
    state = lane < warps ? scratch.of_warp[lane] : identity;
    state = warp_reduce<warps>(state, join);
  }
  return state;
}

/// Takes packs `at`, `at` + step ...; the first element of pack 0 has index `first`.
template <class F>
__device__ __forceinline__ void take_packs(const F& fold, typename F::State& state,
                                           const typename F::Element* x, int packs, int at,
                                           int step, Index first) {
  using T = typename F::Element;
  constexpr int width = vector_width<T>;
  RawPack<T, width> pack[loads_at_once];
  const auto load = [&](int u) { return load_raw<width>(x + Index{at + u * step} * width); };
  const auto take = [&](int u) {
    fold.take(state, unpack(pack[u]), first + Index{at + u * step} * width);
  };
#pragma unroll 1
  for (; at + (loads_at_once - 1) * step < packs; at += loads_at_once * step) {
#pragma unroll
    for (int u = 0; u < loads_at_once; ++u) pack[u] = load(u);
#pragma unroll
    for (int u = 0; u < loads_at_once; ++u) take(u);
  }
#pragma unroll
  for (int u = 0; u < loads_at_once - 1; ++u) {
    if (at + u * step < packs) pack[u] = load(u);
  }
#pragma unroll
  for (int u = 0; u < loads_at_once - 1; ++u) {
    if (at + u * step < packs) take(u);
  }
}

// --- one row -------------------------------------------------------------------------------------

/// A row cut at multiples of 16 bytes: whole packs, and what is before and behind them.
struct OneRow {
  const void* first_pack;
  int packs;
  int head;
  int tail;
};

template <class T>
inline OneRow one_row(const void* x, Index length) {
  constexpr Index width = vector_width<T>;
  const auto lead =
      static_cast<Index>(reinterpret_cast<std::uintptr_t>(x) % load_bytes / sizeof(T));
  const Index head = smaller(lead == 0 ? 0 : width - lead, length);
  const Index packs = (length - head) / width;
  return {static_cast<const T*>(x) + head, static_cast<int>(packs), static_cast<int>(head),
          static_cast<int>(length - head - packs * width)};
}

/// Blocks leave their states in words marked with the number of the launch, which the last block
/// counts up when it has them all: nothing is to be cleared, and replays of a graph count too.
struct Post {
  std::uint64_t* launch;  // from 1
  MarkedWord* words;
};

template <class State>
struct OneRowScratch {
  WarpValues<State, one_row_threads> mine;
  WarpValues<State, one_row_threads> all;
};

template <class F>
__global__ void __launch_bounds__(one_row_threads, is_light<F> ? 4 : 2)
    reduce_one_row(OneRow row, Post post, Result result, F fold) {
  using State = typename F::State;
  using T = typename F::Element;
  constexpr int threads = one_row_threads;
  constexpr int words = words_of<State>;
  start_dependent();
  const auto join = [&](const State& a, const State& b) { return fold.join(a, b); };
  auto& scratch = shared<OneRowScratch<State>>();
  const int t = static_cast<int>(threadIdx.x);
  const int splits = static_cast<int>(gridDim.x);
  const int split = static_cast<int>(blockIdx.x);
  const bool is_last = split == splits - 1;
  std::uint64_t mark = 0;  // as loaded: whatever is done with it here would be waited for
  if (splits > 1 && (t == 0 || is_last)) mark = ptx::load_relaxed(post.launch);
  const T* const x = static_cast<const T*>(row.first_pack);
  State state = fold.identity();
  take_packs(fold, state, x, row.packs, split * threads + t, splits * threads, row.head);
  const Index behind = Index{row.packs} * vector_width<T>;
  if (split == 0 && t < row.head + row.tail) {
    const Index place = t < row.head ? t - row.head : behind + (t - row.head);
    fold.take(state, Pack<T, 1>{{x[place]}}, row.head + place);
  }
  state = first_warp_reduce(state, join, fold.identity(), scratch.mine);
  if (!is_last) {
    if (t == 0) send(post.words + split * words, state, mark);
    return;
  }
  if (splits > 1) {
    State all = t == 0 ? state : fold.identity();
#pragma unroll 1
    for (int s = t; s < splits - 1; s += threads) {
      all = join(all, receive<State>(post.words + s * words, mark));
    }
    state = first_warp_reduce(all, join, fold.identity(), scratch.all);
    if (t == 0) ptx::store_relaxed(post.launch, mark + 1);
  }
  if (t == 0) {
    store_state<F>(result, 0, state, behind + row.head + row.tail);
  }
}

template <class F>
void run_one_row(const Reduce::Args& args, Context& context, const F& fold) {
  const OneRow row = one_row<typename F::Element>(args.x.data, args.terms.size());
  // Half of what the device holds, so that the next launch's blocks find room; the same number on
  // each SM.
  const Index most = Index{context.info().sms} * (is_light<F> ? 2 : 1);
  const Index blocks =
      clamped<Index>(row.packs / (one_row_threads * 2), 1, smaller(most, max_packets));
  Post post{};
  if (blocks > 1) {
    const Zeroed zeroed = zeroed_of(context);
    post = {zeroed.launch, static_cast<MarkedWord*>(zeroed.words)};
  }
  launch(context,
         {.grid = blocks,
          .block = one_row_threads,
          .shared_bytes = sizeof(OneRowScratch<typename F::State>),
          .dependent = can_depend(context)},
         reduce_one_row<F>, row, post, result_of(args), fold);
}

// --- even rows -----------------------------------------------------------------------------------

struct EvenRows {
  const void* x;
  int packs;         // of a row
  Index pitch;       // from row to row, in packs
  Index place_step;  // of results
};

/// A block per row.
template <class F>
__global__ void __launch_bounds__(even_rows_threads, is_light<F> ? 8 : 4)
    reduce_even_rows(EvenRows rows, Result result, F fold) {
  using State = typename F::State;
  using T = typename F::Element;
  constexpr int threads = even_rows_threads;
  start_dependent();
  const auto join = [&](const State& a, const State& b) { return fold.join(a, b); };
  auto& scratch = shared<WarpValues<State, threads>>();
  State state = fold.identity();
  take_packs(fold, state,
             static_cast<const T*>(rows.x) + Index{blockIdx.x} * rows.pitch * vector_width<T>,
             rows.packs, static_cast<int>(threadIdx.x), threads, 0);
  state = first_warp_reduce(state, join, fold.identity(), scratch);
  if (threadIdx.x == 0) {
    store_state<F>(result, Index{blockIdx.x} * rows.place_step, state,
                   Index{rows.packs} * vector_width<T>);
  }
}

template <class F>
void run_even_rows(const Reduce::Args& args, Context& context, const F& fold) {
  constexpr Index width = vector_width<typename F::Element>;
  const EvenRows rows{args.x.data, static_cast<int>(args.terms.size() / width),
                      args.kept.strides[0][0] / width, args.kept.strides[1][0]};
  launch(context,
         {.grid = args.results(),
          .block = even_rows_threads,
          .shared_bytes = sizeof(WarpValues<typename F::State, even_rows_threads>),
          .dependent = can_depend(context)},
         reduce_even_rows<F>, rows, result_of(args), fold);
}

/// Which of the two kernels takes a call, if any.
enum class Straight : std::uint8_t { none, one_row, even_rows };

template <class T>
Straight straight(const Reduce::Args& args, const Context& context) {
  constexpr Index max_bytes = Index{1} << 28;  // beyond, shares that are apart are faster
  constexpr Index width = vector_width<T>;
  if (args.has_segments() || !args.terms.is_contiguous()) return Straight::none;
  const Index length = args.terms.size();
  if (args.results() == 1) {
    return length <= max_bytes / static_cast<Index>(sizeof(T)) ? Straight::one_row : Straight::none;
  }
  // Rows enough for a block each to fill the device; packs enough for its threads.
  const bool many = args.results() > Index{context.info().sms} * 4;
  const bool even = args.kept.rank == 1 && length % width == 0 &&
                    args.kept.strides[0][0] % width == 0 &&
                    reinterpret_cast<std::uintptr_t>(args.x.data) % load_bytes == 0;
  const Index packs = length / width;
  const bool fits =
      packs >= 2 * even_rows_threads && packs < (1 << 24) && args.results() < (Index{1} << 31);
  return many && even && fits ? Straight::even_rows : Straight::none;
}

/// Runs a call on the plainest rows; false: there is no such kernel for its operation or layout.
template <class T>
bool run_straight(const Reduce::Args& args, Context& context) {
  const Straight which = straight<T>(args, context);
  if (which == Straight::none) return false;
  return visit_folds<T, true>(args, [&](const auto& fold) {
    if (which == Straight::one_row) {
      run_one_row(args, context, fold);
    } else {
      run_even_rows(args, context, fold);
    }
  });
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
