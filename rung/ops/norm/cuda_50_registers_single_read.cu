// SPDX-License-Identifier: Apache-2.0
// norm / registers, single read
//
// Idea     a row is spread over the registers of its threads - part of a warp for short rows, up to
//          512 (1024 of f32) for long ones - and stays there: mean, corrected mean and variance,
//          and y all come from one read. The exact two passes then cost no memory traffic at all.
// Changes  against warp_per_row: x is read once from global memory and once in all, and the threads
//          of a row grow with it. Blocks stay for many rows, so that gamma and beta of f32 are read
//          once a block while a thread has up to 4 packs (in any case, before y is due, from L1).
// Cost     what must be: x once, y once.
// Limits   contiguous rows of up to 4096 packs of 16 bytes: 8192 of f64, 32768 of f16; 32768 of
//          f32, too. Rows whose length or address cuts packs: half that, and their weights are
//          loaded one by one.
// Tried    nothing on a GPU yet.
// Source   W. Guo, T. Dao et al., QuACK, 2025 (threads by row length); the variance as in
//          block_two_pass.
#include "rung/device/resident.hpp"
#include "rung/ops/norm/cuda_registers.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

/// Registers are what is scarce: 64 a thread in a block of 1024, 128 in one of 512. Two f32 packs
/// are held by as many as one f16 pack that the compiler keeps widened.
template <class T>
constexpr int most_threads = sizeof(T) == 4 ? 1024 : 512;

/// The longest row in packs.
std::int64_t most_packs(const Norm::Args& args) {
  const std::int64_t threads = args.x.dtype == DType::f32 ? most_threads<float> : most_threads<f16>;
  return all_packs_whole(args) ? 8 * threads : 4 * threads;
}

std::int64_t packs_of(const Norm::Args& args) {
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  return ceil_div(args.columns(), width) + (all_packs_whole(args) ? 0 : 1);  // cut at either end
}

Support supports(const Norm::Args& args, const Context& context) {
  if (const Support rows = require_contiguous_rows(args, context); !rows) return rows;
  if (packs_of(args) > most_packs(args)) {
    return unsupported("the row is longer than the registers of a block hold");
  }
  return supported;
}

double estimate(const Norm::Args& args, const Context& context) {
  return seconds(args, context, 1, all_packs_whole(args) ? 0.95 : 0.85);
}

/// As many blocks as the device holds at once, each going round the rows.
template <class T>
void launch_resident(Context& context, const Call<T>& call, RowBlock block,
                     void (*kernel)(Call<T>)) {
  block.shared_bytes = sizeof(RegisterShared<Accumulator<T>>);
  const std::int64_t resident =
      resident_blocks(context, kernel, block.threads * block.rows, block.shared_bytes);
  launch(context,
         {.grid = std::min(resident, ceil_div(call.rows, std::int64_t{block.rows})),
          .block = {block.threads, block.rows},
          .shared_bytes = block.shared_bytes},
         kernel, call);
}

template <class T>
void launch_whole(Context& context, const Call<T>& call) {
  const std::int64_t packs = call.n / pack_width<T>;
  // 4 packs a thread keep 64 bytes of every thread in flight; longer rows need more of each.
  if (packs <= 2 * 32) {
    launch_resident(context, call, row_block(packs, 2), norm_registers<T, 2, 512>);
  } else if (packs <= 4 * 512) {
    launch_resident(context, call, row_block(packs, 4), norm_registers<T, 4, 512>);
  } else if (packs <= 8 * 512) {
    launch_resident(context, call, row_block(packs, 8), norm_registers<T, 8, 512>);
  } else if constexpr (most_threads<T> == 1024) {
    launch_resident(context, call, row_block(packs, 8), norm_registers<T, 8, 1024>);
  }
}

void run(const Norm::Args& args, Context& context) {
  const bool whole = all_packs_whole(args);
  with_call(args, [&]<class T>(const Call<T>& call) {
    if (whole) return launch_whole(context, call);
    launch_resident(context, call, row_block(packs_of(args), 4),
                    norm_registers_cut<T, 4, most_threads<T>>);
  });
}

const Rung<Norm> self{{.name = "registers_single_read",
                       .step = 50,
                       .after = "warp_per_row",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
