// SPDX-License-Identifier: Apache-2.0
// reduce / one row
//
// Idea     one contiguous row, bound by latency: the kernel computes no segment or piece before its
//          first load. Blocks tag their states with the launch number, which the last block
//          increments after it has received them all, so that nothing is cleared.
// Changes  against single_pass_last_block: no index arithmetic before the first load, and no
//          registers held for it, which together took a third of the time of a row of 4 MB.
// Cost     x is read once; a state of 8 to 16 bytes per block.
// Limits   one row in one piece, up to 256 MiB: beyond, a contiguous share per block is faster.
#include "rung/cpu/split.hpp"  // types: float double f16 bf16 std::int32_t std::uint8_t
#include "rung/device/marked_words.hpp"
#include "rung/ops/reduce/cuda/detail/row_packs.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {
namespace {

constexpr int threads = 512;

/// A row split at 16-byte boundaries: whole packs, and the elements before and after them.
struct OneRow {
  const void* first_pack;
  int packs;
  int head;
  int tail;
};

template <class T>
OneRow one_row(const void* x, Index length) {
  constexpr Index width = vector_width<T>;
  const auto lead =
      static_cast<Index>(reinterpret_cast<std::uintptr_t>(x) % load_bytes / sizeof(T));
  const Index head = smaller(lead == 0 ? 0 : width - lead, length);
  const Index packs = (length - head) / width;
  return {static_cast<const T*>(x) + head, static_cast<int>(packs), static_cast<int>(head),
          static_cast<int>(length - head - packs * width)};
}

/// Memory for the blocks' states, in words tagged with the launch number. The last block increments
/// the number once it has received all states: nothing is cleared, and graph replays count as
/// launches.
struct Post {
  std::uint64_t* launch;  // launch number, from 1
  MarkedWord* words;
};

template <class State>
struct OneRowScratch {
  WarpValues<State, threads> mine;
  WarpValues<State, threads> all;
};

template <class F>
__global__ void __launch_bounds__(threads, is_light<F> ? 4 : 2)
    reduce_one_row(OneRow row, Post post, Result result, F fold) {
  using State = typename F::State;
  using T = typename F::Element;
  constexpr int width = vector_width<T>;
  constexpr int words = words_of_value<State>;
  start_dependent();
  const auto join = [&](const State& a, const State& b) { return fold.join(a, b); };
  auto& scratch = shared<OneRowScratch<State>>();
  const int t = static_cast<int>(threadIdx.x);
  const int splits = static_cast<int>(gridDim.x);
  const int split = static_cast<int>(blockIdx.x);
  const bool is_last = split == splits - 1;
  std::uint64_t mark = 0;  // first used after the fold: an earlier use would wait for the load
  if (splits > 1 && (t == 0 || is_last)) mark = ptx::load_relaxed(post.launch);
  const T* const x = static_cast<const T*>(row.first_pack);
  State state = fold.identity();
  const int packs = row.packs;
  const int step = splits * threads;
  int at = split * threads + t;
  RawPack<T, width> pack[loads_at_once];
  const auto load = [&](int u) { return load_raw<width>(x + Index{at + u * step} * width); };
  const auto take = [&](int u) {
    fold.take(state, unpack(pack[u]), row.head + Index{at + u * step} * width);
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
  const Index behind = Index{packs} * width;
  if (split == 0 && t < row.head + row.tail) {
    const Index place = t < row.head ? t - row.head : behind + (t - row.head);
    fold.take(state, Pack<T, 1>{{x[place]}}, row.head + place);
  }
  state = first_warp_reduce(state, join, fold.identity(), scratch.mine);
  if (!is_last) {
    if (t == 0) send_marked(post.words + split * words, state, mark);
    return;
  }
  if (splits > 1) {
    State all = t == 0 ? state : fold.identity();
#pragma unroll 1
    for (int s = t; s < splits - 1; s += threads) {
      all = join(all, receive_marked<State>(post.words + s * words, mark));
    }
    state = first_warp_reduce(all, join, fold.identity(), scratch.all);
    if (t == 0) ptx::store_relaxed(post.launch, mark + 1);
  }
  if (t == 0) {
    store_state<F>(result, 0, state, behind + row.head + row.tail);
  }
}

template <class F>
Index blocks_of(const OneRow& row, const Context& context) {
  // Half of the resident blocks, to leave room for the next launch's blocks; the same number on
  // each SM.
  const Index most = Index{context.info().sms} * (is_light<F> ? 2 : 1);
  return clamped<Index>(row.packs / (threads * 2), 1, smaller(most, max_packets));
}

template <class F>
void launch_one_row(const Reduce::Args& args, Context& context, const F& fold) {
  const OneRow row = one_row<typename F::Element>(args.x.data, args.terms.size());
  const Index blocks = blocks_of<F>(row, context);
  Post post{};
  if (blocks > 1) {
    const Zeroed zeroed = zeroed_of(context);
    post = {zeroed.launch, static_cast<MarkedWord*>(zeroed.words)};
  }
  launch(context,
         {.grid = blocks,
          .block = threads,
          .shared_bytes = sizeof(OneRowScratch<typename F::State>),
          .dependent = can_depend(context)},
         reduce_one_row<F>, row, post, result_of(args), fold);
}

}  // namespace

/// Launches the reduction of elements of T. Instantiated in T's part of this file.
template <class T>
void run_one_row(const Reduce::Args& args, Context& context);
template <>
void run_one_row<RUNG_SPLIT_TYPE>(const Reduce::Args& args, Context& context) {
  visit_folds<RUNG_SPLIT_TYPE, true>(
      args, [&](const auto& fold) { launch_one_row(args, context, fold); });
}

template <class T>
Work one_row_work(const Reduce::Args& args, const Context& context);
template <>
Work one_row_work<RUNG_SPLIT_TYPE>(const Reduce::Args& args, const Context& context) {
  Work work;
  visit_folds<RUNG_SPLIT_TYPE, true>(args, [&]<class F>(const F&) {
    const OneRow row = one_row<typename F::Element>(args.x.data, args.terms.size());
    const Index blocks = blocks_of<F>(row, context);
    work = row_work(args, blocks, threads, threads, blocks);
  });
  return work;
}

#if RUNG_SPLIT_ONCE
namespace {

Support supports(const Reduce::Args& args, const Context&) { return require_one_row(args); }

Work work(const Reduce::Args& args, const Context& context) {
  return visit<float, double, f16, bf16, std::int32_t, std::uint8_t>(
      args.x.dtype, [&]<class T>() { return one_row_work<T>(args, context); });
}

void run(const Reduce::Args& args, Context& context) {
  visit<float, double, f16, bf16, std::int32_t, std::uint8_t>(
      args.x.dtype, [&]<class T>() { run_one_row<T>(args, context); });
}

const Rung<Reduce> self{{.name = "one_row",
                         .step = 130,
                         .after = "single_pass_last_block",
                         .backend = device_backend,
                         .supports = supports,
                         .passes = {.loads = 1, .stores = 1},
                         .work = work,
                         .run = run}};

}  // namespace
#endif  // RUNG_SPLIT_ONCE
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
