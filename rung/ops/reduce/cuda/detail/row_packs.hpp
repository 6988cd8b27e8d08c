// SPDX-License-Identifier: Apache-2.0
// Types and operations of reduce's fast kernels (single_pass_last_block, one_row, short_rows,
// even_rows, columns), and the fold of a contiguous row with 16-byte loads.
#pragma once

#include <string_view>

#include "rung/core/bounds.hpp"
#include "rung/device/block_work.hpp"
#include "rung/device/dependent.hpp"
#include "rung/ops/reduce/cuda/detail/single_pass.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

inline constexpr int load_bytes = 16;
inline constexpr int loads_at_once = 4;

/// False for states of more than 8 bytes and for squares, which need more registers than full
/// occupancy allows.
template <class F>
inline constexpr bool is_light = sizeof(typename F::State) <= 8;
template <class T>
inline constexpr bool is_light<SquareFold<T>> = false;

// --- in kernels ----------------------------------------------------------------------------------

/// Folds a thread's part of the `length` elements at `row`, the first of which has index `first`:
/// every `threads`-th pack. Packs are aligned to 16 bytes; the first threads take the elements
/// before and after the packs, one each.
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
  // The ends first: the loop then has more registers.
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
  Index left = packs - thread;  // packs from this thread's next pack to the end
#pragma unroll 1
  for (; left > Index{loads_at_once - 1} * threads; left -= Index{loads_at_once} * threads) {
    // All loads are issued before the first is used.
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

/// Returns the block's result in its first warp only: the other warps exit earlier.
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

// --- on the host ---------------------------------------------------------------------------------

/// Calls visit(fold) with the fold of args on elements of T. `search`: include index searches.
template <class T, bool search, class Visit>
void visit_folds(const Reduce::Args& args, const Visit& visit) {
  using reduce_fold::Fold;
  const Fold fold = reduce_fold::fold_of(args.operation);
  if (fold == Fold::sum) return visit(SumFold<T>{});
  if (fold == Fold::squares) {
    if constexpr (!std::is_integral_v<T>) visit(SquareFold<T>{});
    return;
  }
  if (fold == Fold::product) return;
  const Flip flip{fold == Fold::greatest};
  if (!args.is_arg()) return visit(ExtremeFold<T>{flip});
  if constexpr (search) visit(PositionFold<T>{flip});
}

/// Rows in pieces: the innermost reduced axis is contiguous, the outer reduced axes number the
/// pieces.
struct RowPieces {
  const void* x;
  Index length = 0;  // elements per piece
  Collapsed<1> pieces;
};

/// Returns the rows of x; without pieces if x's strides do not allow 16-byte loads.
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

/// Returns the mean number of 16-byte loads per result.
inline Index packs_of_row(const Reduce::Args& args) {
  return ceil_div(average_terms(args), static_cast<Index>(load_bytes / size_of(args.x.dtype)));
}

/// Returns whether results are contiguous columns that the fast column kernels take.
inline bool is_fast_columns(const Reduce::Args& args) {
  const int kept = args.kept.rank - 1;
  const int last = args.terms.rank - 1;
  if (args.has_segments() || kept < 0 || args.kept.shape[kept] < 2) return false;
  if (args.kept.strides[0][kept] != 1 || args.terms.size() < 2) return false;
  if (last >= 0 && args.terms.strides[0][last] == 1) return false;
  // Few columns fill a warp's 512 bytes only if rows follow each other without gaps.
  constexpr Index narrow = 16;
  const bool gapless = args.terms.rank == 1 && args.terms.strides[0][0] == args.kept.shape[kept];
  return args.kept.shape[kept] >= narrow || gapless;
}

inline Support require_fast_fold(const Reduce::Args& args) {
  using enum DType;
  switch (args.x.dtype) {
    case f32:
    case f64:
    case f16:
    case bf16:
    case i32:
    case u8:
      break;
    default:
      return unsupported("f32, f64, f16, bf16, i32 and u8");
  }
  return args.operation == Reduction::product ? unsupported("no products") : supported;
}
inline Support require_rows(const Reduce::Args& args) {
  if (const Support fold = require_fast_fold(args); !fold) return fold;
  const bool rows = row_pieces(args).pieces.size() > 0 || args.x.empty();
  return rows && !is_fast_columns(args) ? supported : unsupported("contiguous rows");
}
/// Returns unsupported unless x is one row in one piece of at most 256 MiB: beyond, a contiguous
/// share per block is faster.
inline Support require_one_row(const Reduce::Args& args) {
  constexpr Index max_bytes = Index{1} << 28;
  if (const Support rows = require_rows(args); !rows) return rows;
  const bool is_one = args.results() == 1 && !args.has_segments() && args.terms.is_contiguous();
  if (!is_one) return unsupported("one contiguous row");
  return args.terms.size() <= max_bytes / static_cast<Index>(size_of(args.x.dtype))
             ? supported
             : unsupported("rows of more than 256 MiB");
}

/// Returns the rates key of element types that take more or other instructions; empty for the rest.
inline std::string_view fold_path(const Reduce::Args& args) {
  if (args.x.dtype == DType::f64) return args.is_arg() ? "f64 arg" : "f64";
  if (size_of(args.x.dtype) < 4) return args.is_arg() ? "narrow arg" : "narrow";
  return args.is_arg() ? "arg" : "";
}

/// Returns the work of blocks in which `group` threads divide a row, or 1/`splits` of it; the
/// threads wait for each piece before the next.
inline Work row_work(const Reduce::Args& args, Index blocks, int threads, int group,
                     Index splits = 1) {
  const Index packs = ceil_div(packs_of_row(args), group * splits);
  const Index pieces = ceil_div(row_pieces(args).pieces.size(), splits);
  return block_work(blocks, threads, larger(packs, pieces), fold_path(args));
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
