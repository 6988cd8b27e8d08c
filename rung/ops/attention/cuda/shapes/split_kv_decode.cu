// SPDX-License-Identifier: Apache-2.0
// attention / split KV, for decoding
//
// Idea     For few queries and a long KV cache, the time is one read of K and V. Stack the queries
//          of all heads that share a head of K and V into one matrix; a block multiplies 16 or 64
//          of its rows by tiles of 64 keys. The keys are split over enough blocks to fill the GPU,
//          and a second kernel combines the partial maxima, sums and weighted values in a fixed
//          order. Before the preceding grid has ended, a block finds its keys.
// Changes  against split_kv: tensor cores, so that 16 rows cost as much as one and 64 little more;
//          tiles of K and V arrive by asynchronous copies, several in flight.
// Cost     one read of K and V. Partial results are 4 (Dv + 2) bytes per row and split.
// Limits   f16 and bf16; D and Dv multiples of 8 up to 256; 16-byte aligned rows of K and V; fewer
//          than 2^31 rows per head of K. Above 64 rows, each further tile reads K and V again, from
//          L2. With pages, packed rows, a rule of the scores or sinks fewer than 2^31 keys and K
//          and V of up to 64 GiB.
// Source   T. Dao and others, Flash-Decoding for long-context inference, 2023; J. Ainslie and
//          others, GQA, 2023.
#include "rung/ops/attention/cuda/detail/facts.hpp"
#include "rung/ops/attention/cuda/shapes/split_kv_decode.cuh"

namespace rung {
namespace {

using namespace attention_cuda;
using namespace attention_cuda::split_kv;

struct DecodeSplitPlan {
  int width;      // 64, 128 or 256
  int row_warps;  // 1 or 4
  bool plain;
  int key_tile;
  std::int64_t row_tiles;
  std::int64_t splits;
  int resident;  // blocks per SM
};

/// Returns the plan whose number of splits minimizes the busiest SM's time, in units of one tile of
/// keys. Model: a block's start and end cost two tiles, the second kernel one, plus the bytes of
/// the partial results.
DecodeSplitPlan plan_of(const Attention::Args& args, const Context& context) {
  DecodeSplitPlan plan{};
  plan.width = padded_width(args);
  const std::int64_t rows = typical_rows(args);
  plan.row_warps = rows <= warp_rows ? 1 : warps;
  const std::int64_t tile_rows = std::int64_t{warp_rows} * plan.row_warps;
  plan.row_tiles = ceil_div(rows, tile_rows);
  plan.plain = is_plain(args);
  with_split_tile<DecodeTile>(plan.width, plan.row_warps, plan.plain, [&]<class Tile>() {
    plan.key_tile = Tile::keys;
    plan.resident = Tile::blocks_per_sm;
  });
  const double slots = static_cast<double>(plan.resident) * context.info().sms;
  const double items = static_cast<double>(args.batch()) * static_cast<double>(args.kv_heads()) *
                       static_cast<double>(plan.row_tiles);
  const std::int64_t tiles = ceil_div(typical_tile_keys(args, tile_rows), plan.key_tile);
  const double bytes = static_cast<double>(plan.key_tile) * 2 *
                       static_cast<double>(args.width() + args.value_width());
  const double parts = static_cast<double>(tile_rows) * 8 *
                       static_cast<double>(args.value_width()) / bytes;  // in tiles
  constexpr double start = 2, launch = 1;
  double least = 0;
  for (std::int64_t splits = 1; splits <= clamped(tiles, std::int64_t{1}, std::int64_t{max_splits});
       ++splits) {
    const double waves = __builtin_ceil(items * static_cast<double>(splits) / slots);
    const double own = static_cast<double>(ceil_div(tiles, splits)) + start;
    const double all = waves * (own + (splits > 1 ? parts : 0)) + (splits > 1 ? launch : 0);
    if (splits == 1 || all < least) {
      plan.splits = splits;
      least = all;
    }
  }
  return plan;
}

/// Returns whether offsets of rows within a head fit RowOffsets.
bool has_short_offsets(const ConstTensorRef& rows) {
  double last = 0;
  for (const int axis : {0, 2}) {
    if (rows.shape[axis] <= 1) continue;
    if (rows.strides[axis] < 0) return false;
    last += static_cast<double>(rows.shape[axis] - 1) * static_cast<double>(rows.strides[axis]);
  }
  return last * 2 < 0x1p36;
}

Support supports(const Attention::Args& args, const Context& context) {
  if (args.q.dtype != DType::f16 && args.q.dtype != DType::bf16) {
    return unsupported("f16 and bf16 only");
  }
  if (args.has_e4m3_keys()) return unsupported("k and v are e4m3");
  if (args.width() > 256 || args.value_width() > 256) return unsupported("D and Dv up to 256");
  if (!has_wide_rows(args.k) || !has_wide_rows(args.v)) {
    return unsupported("rows of k and v: contiguous, multiples of 16 bytes, aligned to 16 bytes");
  }
  if (!has_divisible_rows(args)) return unsupported("fewer than 2^31 rows per head of k");
  if (args.keys() > Divisor::max * 32) return unsupported("fewer than 2^36 keys");
  if (!is_plain(args)) {
    if (args.keys() > Divisor::max) return unsupported("fewer than 2^31 keys");
    if (!has_short_offsets(args.k) || !has_short_offsets(args.v)) {
      return unsupported("k and v of up to 64 GiB");
    }
  }
  const DecodeSplitPlan plan = plan_of(args, context);
  std::size_t bytes = 0;
  with_split_tile<DecodeTile>(plan.width, plan.row_warps, plan.plain, [&]<class Tile>() {
    bytes = sizeof(Layout<f16, Tile::width, Tile::row_warps, Tile::plain>);
  });
  if (bytes > context.info().shared_per_block) {
    return unsupported("tiles that fit in the shared memory of a block");
  }
  const double blocks = static_cast<double>(args.batch()) * static_cast<double>(args.kv_heads()) *
                        static_cast<double>(plan.row_tiles) * static_cast<double>(plan.splits);
  return blocks <= 0x7fffffff ? supported : unsupported("more blocks than a grid has");
}

Work work(const Attention::Args& args, const Context& context) {
  const DecodeSplitPlan plan = plan_of(args, context);
  return split_work(args, plan.row_tiles, plan.splits, warp_rows * plan.row_warps, plan.key_tile,
                    2 * plan.width, plan.resident);
}

template <class T, int Width, int RowWarps, bool Plain>
void launch_tile(const Attention::Args& args, Context& context, const DecodeSplitPlan& plan) {
  const Cut<float> cut = cut_of<float>(args, context, plan.row_tiles, plan.splits);
  const Heads<T> p = attention_heads<T>(args);
  launch(context,
         {.grid = args.batch() * args.kv_heads() * plan.row_tiles * plan.splits,
          .block = threads,
          .shared_bytes = sizeof(Layout<T, Width, RowWarps, Plain>),
          .dependent = can_depend(context)},
         attention_split_kv<T, Width, RowWarps, Plain>, p, cut,
         args.width() > 0 && has_wide_rows(args.q));
  combine_splits(args, context, p, cut);
}

void run(const Attention::Args& args, Context& context) {
  const DecodeSplitPlan plan = plan_of(args, context);
  visit<f16, bf16>(args.q.dtype, [&]<class T>() {
    with_split_tile<DecodeTile>(plan.width, plan.row_warps, plan.plain, [&]<class Tile>() {
      launch_tile<T, Tile::width, Tile::row_warps, Tile::plain>(args, context, plan);
    });
  });
}

const Rung<Attention> self{{.name = "split_kv_decode",
                            .after = "split_kv",
                            .backend = device_backend,
                            .supports = supports,
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
