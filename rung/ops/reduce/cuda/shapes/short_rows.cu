// SPDX-License-Identifier: Apache-2.0
// reduce / short rows
//
// Idea     a warp or less folds a row: the fewest lanes that leave each at least two 16-byte loads.
//          Lanes join by shuffles, and no warp waits for another.
// Changes  against single_pass_last_block: no barrier, and no block of 512 threads per row.
// Cost     x is read once.
// Limits   contiguous rows, in pieces for several axes, and segments: up to 64 packs of 16 bytes on
//          average, up to 1024 with at least two rows per SM.
#include "rung/cpu/split.hpp"  // types: float double f16 bf16 std::int32_t std::uint8_t
#include "rung/ops/reduce/cuda/detail/row_packs.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {
namespace {

/// Reduces short rows, each by a group of up to 32 lanes.
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
    const Places::ResultLocation place = places.of(exists ? mine : 0);
    const T* x = static_cast<const T*>(rows.x) + place.x;
    for (Index piece = 0; exists && piece < pieces; ++piece) {
      take_row(fold, state, x + (pieces == 1 ? place.first : rows.pieces.offset(piece)),
               pieces == 1 ? place.count : rows.length, piece * rows.length, t % group, group);
    }
    state = join_lanes(state, group, [&](const auto& a, const auto& b) { return fold.join(a, b); });
    if (exists && t % group == 0) store_state<F>(result, place.y, state, place.count);
  }
}

Sharing sharing_of(const Reduce::Args& args) {
  const Index packs = packs_of_row(args);
  Sharing sharing;
  sharing.results = args.results();
  sharing.group = 1;
  while (sharing.group < warp_size && sharing.group * 2 < packs) sharing.group *= 2;
  return sharing;
}

template <class F>
void launch_short_rows(const Reduce::Args& args, Context& context, const F& fold) {
  if (args.results() == 0) return;
  const Sharing sharing = sharing_of(args);
  launch(context,
         {.grid = sharing.blocks(), .block = block_threads, .dependent = can_depend(context)},
         reduce_short_rows<F>, row_pieces(args), places_of(args), sharing, result_of(args), fold);
}

}  // namespace

/// Launches the reduction of elements of T. Instantiated in T's part of this file.
template <class T>
void run_short_rows(const Reduce::Args& args, Context& context);
template <>
void run_short_rows<RUNG_SPLIT_TYPE>(const Reduce::Args& args, Context& context) {
  visit_folds<RUNG_SPLIT_TYPE, true>(
      args, [&](const auto& fold) { launch_short_rows(args, context, fold); });
}

#if RUNG_SPLIT_ONCE
namespace {

Support supports(const Reduce::Args& args, const Context& context) {
  if (const Support rows = require_rows(args); !rows) return rows;
  if (require_one_row(args)) return unsupported("more than one contiguous row");
  // Up to 32 loads per lane with at least two rows per SM.
  const bool many = args.results() >= Index{context.info().sms} * 2;
  return packs_of_row(args) <= (many ? 1024 : 64) ? supported : unsupported("short rows");
}

Work work(const Reduce::Args& args, const Context&) {
  const Sharing sharing = sharing_of(args);
  return row_work(args, sharing.blocks(), block_threads, sharing.group);
}

void run(const Reduce::Args& args, Context& context) {
  visit<float, double, f16, bf16, std::int32_t, std::uint8_t>(
      args.x.dtype, [&]<class T>() { run_short_rows<T>(args, context); });
}

const Rung<Reduce> self{{.name = "short_rows",
                         .after = "single_pass_last_block",
                         .backend = device_backend,
                         .supports = supports,
                         .passes = {.loads = 1, .stores = 1},
                         .work = work,
                         .run = run}};

}  // namespace
#endif  // RUNG_SPLIT_ONCE
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
