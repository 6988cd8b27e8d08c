// SPDX-License-Identifier: Apache-2.0
// gemm / stream k
//
// Idea     the steps along k of all tiles in a row, cut into equal parts: each SM gets as many,
//          whatever the number of tiles. Where a tile is cut, the blocks with its first steps leave
//          their sums in memory and the one with its last adds them up.
// Changes  against persistent: no last wave in which most SMs have nothing to do (wave
//          quantization). The order of additions is fixed by the shape and the number of SMs:
//          results repeat to the bit.
// Cost     a tile's sums, 128 KiB, written and read once per block, mostly within L2; a small
//          launch in front that clears flags.
// Limits   as persistent. Where tiles are a multiple of the SMs there is nothing to gain. A block
//          waits for earlier ones only, which leave their part first of all: no deadlock, however
//          few run at a time.
// Tried    -
// Source   Osama et al. 2023, "Stream-K: work-centric parallel decomposition".
#include "rung/ops/gemm/cuda/340_stream_k.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_stream_k(Context& context, const MappedOperands<bf16>& operands,
                  const StreamPartials& partials) {
  launch_stream_k(context, operands, partials);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int clear_threads = 256;

__global__ void __launch_bounds__(clear_threads) gemm_clear_flags(unsigned* flags, int count) {
  const int at = static_cast<int>(blockIdx.x) * clear_threads + static_cast<int>(threadIdx.x);
  if (at < count) flags[at] = 0;
}

constexpr TensorTile tile{.rows = stream_rows, .columns = stream_columns, .reach = 0.84};

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support maps = require_maps(args, context); !maps) return maps;
  const double steps = static_cast<double>(tiles_of(args.m(), tile.rows)) *
                       static_cast<double>(tiles_of(args.n(), tile.columns)) *
                       static_cast<double>(args.batch()) *
                       static_cast<double>(tiles_of(args.k(), tile_depth(args)));
  return steps < 0x1p31 ? supported : unsupported("more than 2^31 steps in all tiles");
}

/// As many steps as the average SM has, not the busiest one; and what the cut tiles cost.
double estimate(const Gemm::Args& args, const Context& context) {
  const double sms = context.info().sms;
  const double tiles = static_cast<double>(tiles_of(args.m(), tile.rows)) *
                       static_cast<double>(tiles_of(args.n(), tile.columns)) *
                       static_cast<double>(args.batch());
  const double waves = tiles / sms;
  const bool aligned = has_aligned_lines(args.a, 128) && has_aligned_lines(args.b, 128);
  const double whole = tensor_seconds(args, context, tile, 1, aligned) - launch_seconds;
  // Parts of less than a tile leave and take up sums more often than once.
  const double cut = 2.0 * static_cast<double>(stream_partial_floats) * sizeof(float) * sms /
                     nominal_rates(context).bytes_per_second / smaller(waves, 1.0);
  const double least = Gemm::cost(args).bytes / nominal_rates(context).bytes_per_second;
  return 2 * launch_seconds + larger(whole * waves / std::ceil(waves), least) + cut;
}

void run(const Gemm::Args& args, Context& context) {
  const std::int64_t blocks = context.info().sms;
  const std::int64_t floats = blocks * stream_partial_floats;
  const auto flags = static_cast<int>(blocks) * consumer_groups;
  auto* const memory = static_cast<float*>(
      context.workspace(static_cast<std::size_t>(floats + flags) * sizeof(float)));
  const StreamPartials partials{memory, reinterpret_cast<unsigned*>(memory + floats)};
  launch(context, {.grid = tiles_of(flags, clear_threads), .block = clear_threads},
         gemm_clear_flags, partials.flags, flags);
  visit<float, f16, bf16>(
      args.a.dtype, [&]<class T>() { run_stream_k(context, mapped_operands<T>(args), partials); });
}

const Rung<Gemm> self{{.name = "stream_k",
                       .step = 340,
                       .after = "persistent",
                       .backend = device_backend,
                       .teaching = true,  // behind persistent on an H100
                       .supports = supports,
                       .speed = {.rows = stream_rows, .columns = stream_columns},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
