// SPDX-License-Identifier: Apache-2.0
// reduce / single pass, last block finishes
//
// Idea     one launch whose blocks fill the device once: each thread keeps four loads of 16 bytes
//          under way, blocks leave a state each, and the last one to finish, elected by a ticket,
//          joins them in fixed order. Rows, columns and segments each have the loop that reads
//          memory in full lines.
// Changes  against general: 16-byte loads whatever the alignment of rows; additions in pairs within
//          a pack, then in f64, one for 16 bytes; columns in vectors of 16 bytes across results.
// Cost     x once; a state of 8 to 16 bytes a block. One launch: at 2^20 elements a second one
//          would cost as much as reading them.
// Limits   contiguous rows (in pieces, for several axes) or columns of f32, f64, f16, bf16, i32,
//          u8; no products, no search down columns, no columns of u8: those are left to general.
// Bits     the same from run to run: the order of joins follows from the layout and from how many
//          blocks the device holds.
// Source   CUB's DeviceReduce (loads, even shares); NVIDIA's threadFenceReduction sample.
#include "rung/ops/reduce/cuda_fast_columns.hpp"
#include "rung/ops/reduce/cuda_fast_rows.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {
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
  constexpr double launch_seconds = 4e-6;
  return launch_seconds + Reduce::cost(args).bytes / nominal_rates(context).bytes_per_second;
}

void run(const Reduce::Args& args, Context& context) {
  if (is_fast_columns(args)) {
    run_fast_columns(args, context);
  } else {
    run_fast_rows(args, context);
  }
}

const Rung<Reduce> self{{.name = "single_pass_last_block",
                         .step = 120,
                         .after = "general",
                         .backend = device_backend,
                         .supports = supports,
                         .estimate = estimate,
                         .run = run}};

}  // namespace
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
