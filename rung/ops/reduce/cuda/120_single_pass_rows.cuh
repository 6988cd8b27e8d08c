// SPDX-License-Identifier: Apache-2.0
// reduce / single pass: the kernels along contiguous rows.
//
// Idea, Changes, Cost and Limits stand in 120_single_pass_last_block.cu,
// whose rung this is a part of.
#pragma once

#include <cstring>

#include "rung/core/bounds.hpp"
#include "rung/device/ptx/memory.hpp"
#include "rung/ops/reduce/cuda/120_single_pass.cuh"

namespace rung::reduce_cuda::inline RUNG_TARGET {

inline constexpr int long_row_threads = 512;

/// Rows in pieces: the innermost reduced axis is contiguous, those before it number the pieces.
struct RowPieces {
  const void* x;
  Index length = 0;  // of a piece
  Collapsed<1> pieces;
};

/// Takes a thread's part of the `length` elements at `row`, the first of which has index `first`.
/// Packs are cut where addresses are multiples of 16; what is left at the ends of the row goes to
/// the first threads, an element each.
template <class F>
__device__ __forceinline__ void take_row(const F& fold, typename F::State& state,
                                         const typename F::Element* row, Index length, Index first,
                                         int thread, int threads) {
  using T = typename F::Element;
  constexpr int width = vector_width<T>;
  const auto lead =
      static_cast<int>(reinterpret_cast<std::uintptr_t>(row) % load_bytes / sizeof(T));
  Index head = lead == 0 ? 0 : width - lead;
  if (head > length) head = length;
  const Index packs = (length - head) / width;
  // The ends come first, so that the loop has the registers to itself.
  const Index tail = head + packs * width;
#pragma unroll 1
  for (Index i = thread; i < head + (length - tail); i += threads) {
    const Index place = i < head ? i : tail + i - head;
    fold.take(state, Pack<T, 1>{{row[place]}}, first + place);
  }
  const int step = threads * width;
  const T* at = row + head + thread * width;
  const Index end = first + tail;
  const auto index = [&](Index left, int u) { return end - (left - Index{u} * threads) * width; };
  RawPack<T, width> pack[loads_at_once];
  Index left = packs - thread;  // packs from this thread's next one on
#pragma unroll 1
  for (; left > Index{loads_at_once - 1} * threads; left -= Index{loads_at_once} * threads) {
    // All loads are in flight before the first is waited for.
#pragma unroll
    for (int u = 0; u < loads_at_once; ++u) pack[u] = load_raw<width>(at + u * step);
#pragma unroll
    for (int u = 0; u < loads_at_once; ++u) fold.take(state, unpack(pack[u]), index(left, u));
    at += loads_at_once * step;
  }
#pragma unroll
  for (int u = 0; u < loads_at_once - 1; ++u) {
    if (left > Index{u} * threads) pack[u] = load_raw<width>(at + u * step);
  }
#pragma unroll
  for (int u = 0; u < loads_at_once - 1; ++u) {
    if (left > Index{u} * threads) fold.take(state, unpack(pack[u]), index(left, u));
  }
}

/// Short rows: up to 32 lanes each.
template <class F>
__global__ void __launch_bounds__(block_threads)
    reduce_short_rows(RowPieces rows, Places places, Sharing sharing, Result result, F fold) {
  using T = typename F::Element;
  start_dependent();
  const int t = static_cast<int>(threadIdx.x);
  const int group = sharing.group;
  const int a_block = block_threads / group;
  const Index pieces = rows.pieces.size();
  for (Index begin = Index{blockIdx.x} * a_block; begin < sharing.results;
       begin += Index{gridDim.x} * a_block) {
    const Index mine = begin + t / group;
    const bool exists = mine < sharing.results;
    auto state = fold.identity();
    const Places::Place place = places.of(exists ? mine : 0);
    const T* x = static_cast<const T*>(rows.x) + place.x;
    for (Index piece = 0; exists && piece < pieces; ++piece) {
      take_row(fold, state, x + (pieces == 1 ? place.first : rows.pieces.offset(piece)),
               pieces == 1 ? place.count : rows.length, piece * rows.length, t % group, group);
    }
    state = join_lanes(state, group, [&](const auto& a, const auto& b) { return fold.join(a, b); });
    if (exists && t % group == 0) store_state<F>(result, place.y, state, place.count);
  }
}

// --- packets: how blocks hand their states to the one that joins them, without a ticket --------
//
// The state goes out in words of 16 bytes that carry 8 bytes of it and a mark. A word arrives in
// one piece, so that whoever sees the mark has the rest; no fence, no counter, and one way through
// the memory instead of three (state, ticket, state).
//
// Packets are empty between launches: the reader clears them. The reader is the block with the
// highest index of those that share a result: blocks start in the order of their indices, so that
// all it waits for have started.

struct alignas(16) MarkedWord {
  std::uint64_t payload;
  std::uint64_t mark;  // 1: sent
};

struct Packet {
  static constexpr int words = 2;
  MarkedWord word[words];
};

template <class State>
inline constexpr int words_of = (static_cast<int>(sizeof(State)) + 7) / 8;

/// Sends a state in words with this mark.
template <class State>
__device__ __forceinline__ void send(MarkedWord* to, const State& state, std::uint64_t mark) {
  std::uint64_t payload[words_of<State>] = {};
  memcpy(payload, &state, sizeof(State));
#pragma unroll
  for (int i = 0; i < words_of<State>; ++i) {
    ptx::store_relaxed(to + i, MarkedWord{payload[i], mark});
  }
}
template <class State>
__device__ __forceinline__ void send(Packet& to, const State& state) {
  static_assert(words_of<State> <= Packet::words);
  send(to.word, state, 1);
}

/// Waits for a state in words with this mark.
template <class State>
__device__ __forceinline__ State receive(const MarkedWord* from, std::uint64_t mark) {
  std::uint64_t payload[words_of<State>];
#pragma unroll
  for (int i = 0; i < words_of<State>; ++i) {
    MarkedWord word;
    do {
      word = ptx::load_relaxed(from + i);
    } while (word.mark != mark);
    payload[i] = word.payload;
  }
  State state;
  memcpy(&state, payload, sizeof(State));
  return state;
}
/// Waits for a state, and empties its packet.
template <class State>
__device__ __forceinline__ State receive(Packet& from) {
  const auto state = receive<State>(from.word, 1);
#pragma unroll
  for (int i = 0; i < words_of<State>; ++i) {
    ptx::store_relaxed(&from.word[i], MarkedWord{0, 0});
  }
  return state;
}

// --- long rows -----------------------------------------------------------------------------------

/// What a block takes of a long row: whole rounds of packs of all its threads.
template <class T>
RUNG_HD inline Index share_of(Index length, int splits) {
  constexpr Index round = Index{long_row_threads} * vector_width<T>;
  return splits == 1 ? length : round_up(ceil_div(length, Index{splits}), round);
}

/// Long rows: a block each or several, of which the last one waits for the others' states. Rows in
/// one piece are the usual case, and have a kernel of fewer registers.
template <class F, bool alone>
__global__ void __launch_bounds__(long_row_threads, 2)
    reduce_long_rows(RowPieces rows, Places places, Sharing sharing, Result result, F fold) {
  using State = typename F::State;
  using T = typename F::Element;
  constexpr int threads = long_row_threads;
  start_dependent();
  const auto join = [&](const State& a, const State& b) { return fold.join(a, b); };
  auto& scratch = shared<WarpValues<State, threads>>();
  const int t = static_cast<int>(threadIdx.x);
  const int splits = sharing.splits;
  for (Index unit = blockIdx.x; unit < sharing.results * splits; unit += gridDim.x) {
    // A division of 64 bits takes as long as a load: none where it can be helped.
    const Index mine = splits == 1 ? unit : sharing.results == 1 ? 0 : unit / splits;
    const int split = static_cast<int>(unit - mine * splits);
    State state = fold.identity();
    {
      const Places::Place place = places.of(mine);
      const T* x = static_cast<const T*>(rows.x) + place.x;
      // A block's share is contiguous, and its packs are as aligned as the row's.
      const auto take_share = [&](const T* row, Index length, Index first) {
        const Index share = places.bounds == nullptr ? sharing.share : share_of<T>(length, splits);
        const Index begin = min(split * share, length);
        take_row(fold, state, row + begin, min(share, length - begin), first + begin, t, threads);
      };
      if constexpr (alone) {
        take_share(x + place.first, place.count, 0);
      } else {
        // Blocks take whole pieces where there are enough, else all of them share each.
        const Index pieces = rows.pieces.size();
        if (pieces >= splits) {
          for (Index piece = split; piece < pieces; piece += splits) {
            take_row(fold, state, x + rows.pieces.offset(piece), rows.length, piece * rows.length,
                     t, threads);
          }
        } else {
          for (Index piece = 0; piece < pieces; ++piece) {
            take_share(x + rows.pieces.offset(piece), rows.length, piece * rows.length);
          }
        }
      }
    }
    state = block_reduce<threads>(state, join, fold.identity(), scratch);
    if (splits > 1) {
      Packet* boxes = static_cast<Packet*>(sharing.states) + mine * splits;
      if (split < splits - 1) {
        if (t == 0) send(boxes[split], state);
        continue;
      }
      State all = fold.identity();
#pragma unroll 1
      for (int s = t; s < splits; s += threads) {
        all = join(all, s == split ? state : receive<State>(boxes[s]));
      }
      state = block_reduce<threads>(all, join, fold.identity(), scratch);
    }
    if (t == 0) {
      const Places::Place place = places.of(mine);
      store_state<F>(result, place.y, state, place.count);
    }
  }
}

/// Rows as the kernel wants them; no pieces: x's strides do not allow it.
inline RowPieces row_pieces(const Reduce::Args& args) {
  RowPieces rows;
  rows.x = args.x.data;
  const Collapsed<1>& terms = args.terms;
  if (terms.rank == 0) {
    rows.length = terms.size();
    return rows;
  }
  const int last = terms.rank - 1;
  if (terms.strides[0][last] != 1) {
    rows.pieces.count = 0;
    return rows;
  }
  rows.length = terms.shape[last];
  rows.pieces.rank = last;
  for (int axis = 0; axis < last; ++axis) {
    rows.pieces.shape[axis] = terms.shape[axis];
    rows.pieces.strides[0][axis] = terms.strides[0][axis];
    rows.pieces.count *= terms.shape[axis];
  }
  return rows;
}

/// Blocks a long row; `packs` loads each row.
inline int splits_of(Index results, Index packs, Index resident) {
  // Much work is best cut finer than the device holds blocks, since not all SMs are
  // equally fast; with little, every block more is one more state to wait for.
  constexpr Index many_loads = 128;
  const bool much = results * packs >= resident * long_row_threads * many_loads;
  const Index blocks = resident * (results > 1 ? 4 : much ? 2 : 1);
  const Index useful = packs / (Index{long_row_threads} * loads_at_once);
  const Index splits = smaller(smaller(blocks, max_packets) / results, useful);
  return static_cast<int>(larger<Index>(splits, 1));
}

template <class F>
void run_rows(const Reduce::Args& args, Context& context, const F& fold) {
  using State = typename F::State;
  constexpr std::size_t shared_bytes = sizeof(WarpValues<State, long_row_threads>);
  constexpr Index max_blocks = 0x7fffffff;
  const RowPieces rows = row_pieces(args);
  const auto kernel =
      rows.pieces.size() == 1 ? reduce_long_rows<F, true> : reduce_long_rows<F, false>;
  const Index resident = resident_blocks(context, kernel, long_row_threads, shared_bytes);
  const Index packs = ceil_div(average_terms(args), Index{vector_width<typename F::Element>});
  const bool dependent = can_depend(context);
  Sharing sharing;
  sharing.results = args.results();
  if (sharing.results == 0) return;
  // A warp or less a row, up to 32 loads per lane, where there are warps enough.
  if (packs <= (sharing.results >= resident ? 1024 : 64)) {
    sharing.group = 1;
    while (sharing.group < warp_size && sharing.group * 2 < packs) sharing.group *= 2;
    const Index blocks = ceil_div(sharing.results, Index{block_threads / sharing.group});
    launch(context,
           {.grid = smaller(blocks, max_blocks), .block = block_threads, .dependent = dependent},
           reduce_short_rows<F>, rows, places_of(args), sharing, result_of(args), fold);
    return;
  }
  sharing.splits = splits_of(sharing.results, packs, resident);
  sharing.share = share_of<typename F::Element>(rows.length, sharing.splits);
  if (sharing.splits > 1) sharing.states = zeroed_of(context).packets;
  launch(context,
         {.grid = smaller(sharing.results * sharing.splits, max_blocks),
          .block = long_row_threads,
          .shared_bytes = shared_bytes,
          .dependent = dependent},
         kernel, rows, places_of(args), sharing, result_of(args), fold);
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
