// SPDX-License-Identifier: Apache-2.0
// reduce / single pass, last block finishes
//
// Idea     one launch: each thread keeps four 16-byte loads in flight; a row has one or more
//          blocks, which send their states to its last block in flagged words, and the last block
//          joins them in fixed order.
// Changes  against general: 16-byte loads for any alignment of rows; additions in pairs within a
//          pack, then in f64, one per 16 bytes; no ticket (device/marked_words.hpp); the next
//          launch starts while this one runs (device/dependent.hpp).
// Cost     x is read once; a state of 8 to 16 bytes per block. One launch: at 2^20 elements a
//          second launch would cost as much as reading them.
// Limits   contiguous rows, in pieces for several axes, of f32, f64, f16, bf16, i32, u8; no
//          products. Every row takes at least a block of 512 threads. Results are reproducible bit
//          for bit: the order of joins depends on the layout and the device only.
// Source   CUB's DeviceReduce (loads, even shares); NCCL's LL protocol (flagged words).
#include "rung/cpu/split.hpp"  // types: float double f16 bf16 std::int32_t std::uint8_t
#include "rung/device/marked_words.hpp"
#include "rung/ops/reduce/cuda/detail/row_packs.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {
namespace {

constexpr int long_row_threads = 512;

/// Returns the elements per block of a long row, a multiple of one pack per thread.
template <class T>
RUNG_HD Index share_of(Index length, int splits) {
  constexpr Index round = Index{long_row_threads} * vector_width<T>;
  return splits == 1 ? length : round_up(ceil_div(length, Index{splits}), round);
}

/// Reduces long rows, each in one block or several, of which the last waits for the states of the
/// others. `alone`: rows in one piece, the usual case, which takes fewer registers.
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
    // A 64-bit division takes as long as a load: avoid it if possible.
    const Index mine = splits == 1 ? unit : sharing.results == 1 ? 0 : unit / splits;
    const int split = static_cast<int>(unit - mine * splits);
    State state = fold.identity();
    {
      const Places::ResultLocation place = places.of(mine);
      const T* x = static_cast<const T*>(rows.x) + place.x;
      // A block's share is contiguous, and its packs have the alignment of the row's.
      const auto take_share = [&](const T* row, Index length, Index first) {
        const Index share = places.bounds == nullptr ? sharing.share : share_of<T>(length, splits);
        const Index begin = min(split * share, length);
        take_row(fold, state, row + begin, min(share, length - begin), first + begin, t, threads);
      };
      if constexpr (alone) {
        take_share(x + place.first, place.count, 0);
      } else {
        // With enough pieces, blocks take whole pieces; else all blocks divide each piece.
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
        if (t == 0) send_marked(boxes[split], state);
        continue;
      }
      State all = fold.identity();
#pragma unroll 1
      for (int s = t; s < splits; s += threads) {
        all = join(all, s == split ? state : receive_marked<State>(boxes[s]));
      }
      state = block_reduce<threads>(all, join, fold.identity(), scratch);
    }
    if (t == 0) {
      const Places::ResultLocation place = places.of(mine);
      store_state<F>(result, place.y, state, place.count);
    }
  }
}

/// Returns the blocks per row; a row is `packs` loads.
int splits_of(Index results, Index packs, Index resident) {
  // With much work, more blocks than fit the device at once balance SMs of unequal speed; with
  // little work, each block adds a state to wait for.
  constexpr Index many_loads = 128;
  const bool much = results * packs >= resident * long_row_threads * many_loads;
  const Index blocks = resident * (results > 1 ? 4 : much ? 2 : 1);
  const Index useful = packs / (Index{long_row_threads} * loads_at_once);
  const Index splits = smaller(smaller(blocks, max_packets) / results, useful);
  return static_cast<int>(larger<Index>(splits, 1));
}

template <class F>
auto kernel_of(const Reduce::Args& args) {
  return row_pieces(args).pieces.size() == 1 ? reduce_long_rows<F, true>
                                             : reduce_long_rows<F, false>;
}
template <class F>
constexpr std::size_t shared_bytes = sizeof(WarpValues<typename F::State, long_row_threads>);

template <class F>
Sharing sharing_of(const Reduce::Args& args, const Context& context) {
  Sharing sharing;
  sharing.results = args.results();
  sharing.splits =
      splits_of(sharing.results, packs_of_row(args),
                resident_blocks(context, kernel_of<F>(args), long_row_threads, shared_bytes<F>));
  sharing.share = share_of<typename F::Element>(row_pieces(args).length, sharing.splits);
  return sharing;
}
std::int64_t blocks_of(const Sharing& sharing) {
  constexpr Index max_blocks = 0x7fffffff;
  return smaller(sharing.results * sharing.splits, max_blocks);
}

template <class F>
void launch_long_rows(const Reduce::Args& args, Context& context, const F& fold) {
  if (args.results() == 0) return;
  Sharing sharing = sharing_of<F>(args, context);
  if (sharing.splits > 1) sharing.states = zeroed_of(context).packets;
  launch(context,
         {.grid = blocks_of(sharing),
          .block = long_row_threads,
          .shared_bytes = shared_bytes<F>,
          .dependent = can_depend(context)},
         kernel_of<F>(args), row_pieces(args), places_of(args), sharing, result_of(args), fold);
}

}  // namespace

/// Launches the reduction of elements of T. Instantiated in T's part of this file.
template <class T>
void run_long_rows(const Reduce::Args& args, Context& context);
template <>
void run_long_rows<RUNG_SPLIT_TYPE>(const Reduce::Args& args, Context& context) {
  visit_folds<RUNG_SPLIT_TYPE, true>(
      args, [&](const auto& fold) { launch_long_rows(args, context, fold); });
}
template <class T>
Work long_rows_work(const Reduce::Args& args, const Context& context);
template <>
Work long_rows_work<RUNG_SPLIT_TYPE>(const Reduce::Args& args, const Context& context) {
  Work work;
  visit_folds<RUNG_SPLIT_TYPE, true>(args, [&]<class F>(const F&) {
    const Sharing sharing = sharing_of<F>(args, context);
    work = row_work(args, blocks_of(sharing), long_row_threads, long_row_threads, sharing.splits);
  });
  return work;
}

#if RUNG_SPLIT_ONCE
namespace {

Support supports(const Reduce::Args& args, const Context&) { return require_rows(args); }

Work work(const Reduce::Args& args, const Context& context) {
  return visit<float, double, f16, bf16, std::int32_t, std::uint8_t>(
      args.x.dtype, [&]<class T>() { return long_rows_work<T>(args, context); });
}

void run(const Reduce::Args& args, Context& context) {
  visit<float, double, f16, bf16, std::int32_t, std::uint8_t>(
      args.x.dtype, [&]<class T>() { run_long_rows<T>(args, context); });
}

const Rung<Reduce> self{{.name = "single_pass_last_block",
                         .step = 120,
                         .after = "general",
                         .backend = device_backend,
                         .supports = supports,
                         .passes = {.loads = 1, .stores = 1},
                         .work = work,
                         .run = run}};

}  // namespace
#endif  // RUNG_SPLIT_ONCE
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
