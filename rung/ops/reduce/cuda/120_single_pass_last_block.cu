// SPDX-License-Identifier: Apache-2.0
// reduce / single pass, last block finishes
//
// Idea     one launch: each thread keeps four loads of 16 bytes in flight, blocks leave a state
//          each, and the last block joins them in fixed order. Rows, columns and segments each have
//          the loop that reads memory in full lines: 120_single_pass_rows.cuh, _columns.cuh and,
//          for the plainest rows, _straight_rows.cuh.
// Changes  against general: 16-byte loads whatever the alignment of rows; additions in pairs within
//          a pack, then in f64, one for 16 bytes; columns in vectors of 16 bytes across results.
//          Blocks of a long row hand their states over in words that carry a mark, so that there is
//          no ticket to draw (packets), and the next launch is set up while this one runs
//          (device/dependent.hpp).
// Cost     x once; a state of 8 to 16 bytes per block. One launch: at 2^20 elements a second one
//          would cost as much as reading them.
// Limits   contiguous rows (in pieces, for several axes) or columns of f32, f64, f16, bf16, i32,
//          u8; no products, no search down columns, no columns of u8: those are left to general.
// Bits     the same from run to run: the order of joins follows from the layout and from how many
//          blocks the device holds.
// Tried    on an H200, one sum of f32, launches in a row over rotated buffers, CUB 8.4 us at 2^20
//          and 10.0 at 2^22. By the kernel for any long row 5.3 and 7.8 us; by one that knows of
//          one contiguous row alone 4.0 to 4.6 and 6.9 with words of 32 bytes that the reader
//          clears, 4.0 and 7.0 with words of 16 whose mark is one more than a number in memory
//          (waited for before the first load of x), by a trial kernel for sums alone 3.5 and 6.3.
//          Before that, a ticket 5.3, 8.6; no dependent launches 4.9, 7.8. At 2^22, twice 132
//          blocks are best where four of them fit an SM, so that two launches do; where
//          three fit 8.9: they gather. The first warp alone to the end, or one f64 addition for
//          four packs: nothing. 2^28, as a multiple of CUB's speed: 256 threads and a grid's stride
//          1.00, 512 threads with a contiguous share each and twice as many blocks as the device
//          holds 1.01, 256 threads and sixteen times as many 0.92; 16 loads at once a thread 0.71;
//          with the hint to fetch 256 bytes into L2 0.95, other hints nothing. 16384 rows of 16384,
//          also against CUB: the kernel for any row 0.98 (58 registers; 78: 0.90; 40, which spill:
//          0.81), one for rows of whole packs 1.01 (25 registers), whether of 256, 512 or 1024
//          threads; 131072 rows of 2048: a warp per row 1185 GB/s, CUB 2685, a block per row 4530.
//          Sums of u8: 543 GB/s with 16 bytes taken apart into registers.
// Source   CUB's DeviceReduce (loads, even shares).
#include <type_traits>

#include "rung/cpu/split.hpp"  // types: float double f16 bf16 std::int32_t std::uint8_t
#include "rung/ops/reduce/cuda/120_single_pass_columns.cuh"
#include "rung/ops/reduce/cuda/120_single_pass_straight_rows.cuh"

namespace rung::reduce_cuda::inline RUNG_TARGET {

/// Runs a call on elements of T: compiled with its kernels in T's part of this file.
template <class T>
void run_single_pass(const Reduce::Args& args, Context& context);
template <>
void run_single_pass<RUNG_SPLIT_TYPE>(const Reduce::Args& args, Context& context) {
  using T = RUNG_SPLIT_TYPE;
  if (is_fast_columns(args)) {
    if constexpr (!std::is_same_v<T, std::uint8_t>) {
      visit_folds<T, false>(args, [&](const auto& fold) { run_columns(args, context, fold); });
    }
  } else if (!run_straight<T>(args, context)) {
    visit_folds<T, true>(args, [&](const auto& fold) { run_rows(args, context, fold); });
  }
}

#if RUNG_SPLIT_ONCE
namespace {

Support supports(const Reduce::Args& args, const Context&) {
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
  if (args.operation == Reduction::product) return unsupported("no products");
  if (is_fast_columns(args)) {
    if (args.x.dtype == u8) return unsupported("no columns of u8");
    return args.is_arg() ? unsupported("no search down columns") : supported;
  }
  return row_pieces(args).pieces.size() > 0 || args.x.empty()
             ? supported
             : unsupported("contiguous rows or columns");
}

double estimate(const Reduce::Args& args, const Context& context) {
  // The lanes of a result wait for each piece of its row before the next.
  constexpr double wait = 0.55e-6;
  constexpr double groups_per_sm = 64;  // warps
  double waiting = 0;
  if (!is_fast_columns(args)) {
    const auto pieces = static_cast<double>(row_pieces(args).pieces.size());
    const double waves = static_cast<double>(args.results()) / (groups_per_sm * context.info().sms);
    if (pieces > 1) waiting = pieces * wait * larger(1.0, waves);
  }
  return larger(estimate_seconds(Reduce::cost(args), {.bandwidth = 1}, context),
                launch_seconds + waiting);
}

void run(const Reduce::Args& args, Context& context) {
  visit<float, double, f16, bf16, std::int32_t, std::uint8_t>(
      args.x.dtype, [&]<class T>() { run_single_pass<T>(args, context); });
}

const Rung<Reduce> self{{.name = "single_pass_last_block",
                         .step = 120,
                         .after = "general",
                         .backend = device_backend,
                         .supports = supports,
                         .passes = {.loads = 1, .stores = 1},
                         .estimate = estimate,
                         .run = run}};

}  // namespace
#endif  // RUNG_SPLIT_ONCE
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
