// SPDX-License-Identifier: Apache-2.0
// The kernel of reduce's top CUDA rung along contiguous rows.
#pragma once

#include "rung/ops/reduce/cuda_fast.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

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
                                         Index thread, Index threads) {
  using T = typename F::Element;
  constexpr int width = pack_width<T>;
  const auto lead =
      static_cast<int>(reinterpret_cast<std::uintptr_t>(row) % load_bytes / sizeof(T));
  Index head = lead == 0 ? 0 : width - lead;
  if (head > length) head = length;
  const Index packs = (length - head) / width;
  const T* body = row + head;
  for (Index p = thread; p < packs; p += loads_at_once * threads) {
    // All loads are under way before the first is waited for.
    Pack<T, width> pack[loads_at_once];
#pragma unroll
    for (int u = 0; u < loads_at_once; ++u) {
      if (p + u * threads < packs) pack[u] = load_wide<width>(body + (p + u * threads) * width);
    }
#pragma unroll
    for (int u = 0; u < loads_at_once; ++u) {
      if (p + u * threads >= packs) break;
      fold.take(state, pack[u], first + head + (p + u * threads) * width);
    }
  }
  const Index tail = head + packs * width;
  for (Index i = thread; i < head + (length - tail); i += threads) {
    const Index at = i < head ? i : tail + i - head;
    fold.take(state, Pack<T, 1>{{row[at]}}, first + at);
  }
}

template <class F>
__global__ void __launch_bounds__(block_threads)
    reduce_rows_kernel(RowPieces rows, Places places, Sharing sharing, Result result, F fold) {
  using State = typename F::State;
  using T = typename F::Element;
  fold_results(places, sharing, result, fold,
               [&](State& state, const Places::Place& place, const Worker& worker) {
                 const T* x = static_cast<const T*>(rows.x) + place.x;
                 const Index pieces = rows.pieces.size();
                 const bool alone = pieces == 1;
                 // Blocks take whole pieces where there are enough, else all of them share each.
                 const bool apart = pieces >= worker.splits && !alone;
                 for (Index piece = apart ? worker.split : 0; piece < pieces;
                      piece += apart ? worker.splits : 1) {
                   take_row(fold, state, x + (alone ? place.first : rows.pieces.offset(piece)),
                            alone ? place.count : rows.length, piece * rows.length,
                            apart ? worker.thread : worker.index(),
                            apart ? worker.threads : worker.count());
                 }
               });
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

template <class F>
void run_rows(const Reduce::Args& args, Context& context, const F& fold) {
  const auto kernel = reduce_rows_kernel<F>;
  constexpr std::size_t shared_bytes = sizeof(FinishScratch<F>);
  const Index packs = ceil_div(average_terms(args), Index{pack_width<typename F::Element>});
  Sharing sharing = share_out(args.results(), packs, loads_at_once,
                              resident_blocks(context, kernel, block_threads, shared_bytes));
  if (sharing.results == 0) return;
  provide<typename F::State>(sharing, context);
  launch(context, {.grid = sharing.blocks(), .block = block_threads, .shared_bytes = shared_bytes},
         kernel, row_pieces(args), places_of(args), sharing, result_of(args), fold);
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
