// SPDX-License-Identifier: Apache-2.0
// One launch for any reduction: how threads, warps and blocks share the terms of a result, and how
// the last block to finish puts the others' states together - in a fixed order, so that every run
// gives the same bits.
//
// Tickets are counters in memory that the context owns, zeroed by a launch when the context first
// reduces, and put back to zero by the last block of every launch that used them (so are the
// mailboxes of mailbox.hpp). The workspace, whose contents are undefined, holds states alone;
// calls may be repeated and captured in graphs.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/ptx_memory.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/reduce/cuda/detail/store.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

inline constexpr int block_threads = 256;
inline constexpr std::int64_t most_tickets = 4096;    // results that several blocks share
inline constexpr std::int64_t most_mailboxes = 4096;  // blocks that share results

/// The context's memory that is zero between calls; made by cuda/115_general.cu.
struct Zeroed {
  unsigned* tickets;
  void* mailboxes;        // of 32 bytes
  void* words;            // as many again, for straight_rows.hpp, which leaves
  std::uint64_t* launch;  // them as they are, and counts its launches here, from 1
};
Zeroed zeroed_of(Context& context);
inline unsigned* tickets_of(Context& context) { return zeroed_of(context).tickets; }

/// How the results of a call are shared out.
struct Sharing {
  Index results = 0;
  int group = block_threads;  // threads a result: a power of two up to 32, or a block
  int splits = 1;             // blocks a result, where a group is a block
  Index share = 0;            // elements of a block that shares one, where rows are alike
  void* states = nullptr;     // of blocks that share a result
  unsigned* tickets = nullptr;

  [[nodiscard]] Index blocks() const {
    constexpr Index most = 0x7fffffff;
    if (group == block_threads) return smaller(results * splits, most / splits * splits);
    return smaller(ceil_div(results, Index{block_threads / group}), most);
  }
};

/// `packs` loads a result, `unrolled` of them at once a thread.
inline Sharing share_out(Index results, Index packs, int unrolled, Index resident) {
  Sharing sharing;
  sharing.results = results;
  // Up to 16 loads a lane, a warp or less a result - where there are warps enough.
  const bool many = results * 2 >= resident;
  if (packs <= (many ? 512 : 64)) {
    sharing.group = 1;
    while (sharing.group < 32 && sharing.group * 2 < packs) sharing.group *= 2;
    return sharing;
  }
  if (results <= most_tickets && results < resident) {
    const Index useful = packs / (Index{block_threads} * unrolled);
    sharing.splits = static_cast<int>(larger<Index>(smaller(resident / results, useful), 1));
  }
  return sharing;
}

template <class F>
struct FinishScratch {
  WarpValues<typename F::State, block_threads> warps;
  int is_last;
};

/// Called by all threads of a block: is this the last of `splits` blocks to come here? What the
/// others wrote before they came is then visible.
__device__ __forceinline__ bool is_last_block(unsigned* ticket, int splits, int& scratch) {
  if (threadIdx.x == 0) {
    const unsigned before = ptx::atomic_add_acquire_release(ticket, 1U);
    const bool last = before + 1 == static_cast<unsigned>(splits);
    if (last) *ticket = 0;  // nobody else will look at it in this launch
    scratch = last ? 1 : 0;
  }
  __syncthreads();
  return scratch != 0;
}

/// The threads that work on one result.
struct Worker {
  Index split, splits;    // blocks
  Index thread, threads;  // within one
  [[nodiscard]] __device__ __forceinline__ Index index() const { return split * threads + thread; }
  [[nodiscard]] __device__ __forceinline__ Index count() const { return splits * threads; }
};

/// A result's terms and its place in y: all axes, or a segment.
struct Places {
  Collapsed<2> kept;
  Index terms = 0;
  const void* bounds = nullptr;  // of segments
  bool wide = false;             // i64, not i32
  Index bound_step = 0;
  Index segments = 1;
  Index segment_step = 0;  // of y

  struct Place {
    Index x = 0;  // where kept axes put it
    Index y = 0;
    Index first = 0;  // term
    Index count = 0;
  };
  [[nodiscard]] __device__ __forceinline__ Index bound(Index i) const {
    const Index at = i * bound_step;
    const Index value = wide ? static_cast<const std::int64_t*>(bounds)[at]
                             : Index{static_cast<const std::int32_t*>(bounds)[at]};
    return value < 0 ? 0 : value > terms ? terms : value;
  }
  [[nodiscard]] __device__ __forceinline__ Place of(Index result) const {
    Place place;
    const Index outer = bounds != nullptr ? result / segments : result;
    std::int64_t at[2];
    kept.offsets(outer, at);
    place.x = at[0];
    place.y = at[1];
    place.count = terms;
    if (bounds != nullptr) {
      const Index segment = result - outer * segments;
      place.y += segment * segment_step;
      place.first = bound(segment);
      place.count = bound(segment + 1) - place.first;
      if (place.count < 0) place.count = 0;
    }
    return place;
  }
};

/// The states of each `group` lanes in all of them; every lane of the warp calls.
template <class State, class Join>
__device__ __forceinline__ State join_lanes(State state, int group, const Join& join) {
  for (int distance = 1; distance < group; distance *= 2) {
    const State other = shuffle_xor(state, distance);
    state =
        (static_cast<int>(threadIdx.x) & distance) != 0 ? join(other, state) : join(state, other);
  }
  return state;
}

/// accumulate(state, place, worker) takes up a thread's part of a result. What is inlined - that,
/// the walk to a place, the block's reduction, the end - stands in the code once.
template <class F, class Accumulate>
__device__ __forceinline__ void fold_results(const Places& places, const Sharing& sharing,
                                             const Result& to, const F& fold,
                                             const Accumulate& accumulate) {
  using State = typename F::State;
  const auto join = [&](const State& a, const State& b) { return fold.join(a, b); };
  auto& scratch = shared<FinishScratch<F>>();
  const int t = static_cast<int>(threadIdx.x);
  const int group = sharing.group;
  const int splits = sharing.splits;
  const int a_block = block_threads / group;  // groups
  const Index units = sharing.results * splits;
  for (Index first = Index{blockIdx.x} * a_block; first < units;
       first += Index{gridDim.x} * a_block) {
    const Index unit = first + t / group;
    const bool exists = unit < units;
    const Index result = splits == 1 ? unit : unit / splits;
    State state = fold.identity();
    const Places::Place place = places.of(exists ? result : 0);
    if (exists) {
      accumulate(state, place,
                 Worker{splits == 1 ? 0 : unit - result * splits, splits, t % group, group});
    }
    if (group < block_threads) {
      state = join_lanes(state, group, join);
    } else {
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

inline Places places_of(const Reduce::Args& args) {
  Places places;
  places.kept = args.kept;
  places.terms = args.terms.size();
  if (args.has_segments()) {
    places.bounds = args.offsets.data;
    places.wide = args.offsets.dtype == DType::i64;
    places.bound_step = args.offsets.strides[0];
    places.segments = args.segments();
    places.segment_step = args.segment_step();
  }
  return places;
}

/// What a result has on average: what sharing out goes by.
inline Index average_terms(const Reduce::Args& args) {
  const Index cuts = args.has_segments() ? larger<Index>(args.segments(), 1) : 1;
  return ceil_div(args.terms.size(), cuts);
}

/// Memory for the states of blocks that share results.
template <class State>
void provide(Sharing& sharing, Context& context) {
  if (sharing.splits == 1) return;
  sharing.tickets = tickets_of(context);
  sharing.states = context.workspace(static_cast<std::size_t>(sharing.results) *
                                     static_cast<std::size_t>(sharing.splits) * sizeof(State));
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
