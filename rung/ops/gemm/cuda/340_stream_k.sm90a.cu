// SPDX-License-Identifier: Apache-2.0
// gemm / stream k
//
// Idea     tiles of C in full waves are computed whole, one per SM at a time; the tiles of the
//          last, partial wave are split along k into slices for all SMs. The slices' sums go to
//          memory, and a second kernel combines them.
// Changes  against cluster_multicast: no last wave with mostly idle SMs (wave quantization). Slices
//          are combined in a fixed order: results are bitwise reproducible.
// Cost     128 KiB written and read per slice of a split tile, mostly within L2; a second launch,
//          set up while the first kernel ends.
// Limits   as persistent. No gain if tiles fill the last wave.
// Source   Osama et al. 2023, "Stream-K: work-centric parallel decomposition", its hybrid
//          schedules.
#include "rung/cpu/split.hpp"  // types: float f16 bf16
#include "rung/ops/gemm/cuda/340_stream_k.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_stream_k(Context& context, const MappedOperands<RUNG_SPLIT_TYPE>& operands,
                  const TensorPlan& plan) {
  launch_stream_k(context, operands, plan);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

using namespace gemm_cuda;

/// Returns the work. Tiles of the last wave are split: no SM idles.
Work work(const Gemm::Args& args, const Context& context) {
  const TensorPlan plan = plan_tensor(args, context, stream_tiles);
  const TensorTile& tile = stream_tiles[plan.tile];
  Work work = tensor_work(args, context, tile, 1);
  const std::int64_t at_once = context.info().sms / tile.blocks;
  const std::int64_t tiles =
      tiles_of(args.m(), tile.rows) * tiles_of(args.n(), tile.columns) * args.batch();
  const double turns = static_cast<double>(tiles) / static_cast<double>(at_once);
  if (plan.slices > 1) {
    const double share = turns / std::ceil(turns);
    work.launches = 2;
    const std::int64_t whole = tiles / at_once * at_once;
    work.blocks = tile.blocks * smaller(at_once, whole + (tiles - whole) * plan.slices);
    for (Amount* amount : {&work.operations, &work.rounds, &work.steps}) {
      *amount = *amount * share;
    }
  }
  return work;
}

void run(const Gemm::Args& args, Context& context) {
  const TensorPlan plan = plan_tensor(args, context, stream_tiles);
  visit<float, f16, bf16>(
      args.a.dtype, [&]<class T>() { run_stream_k(context, mapped_operands<T>(args), plan); });
}

const Rung<Gemm> self{{.name = "stream_k",
                       .step = 340,
                       .after = "cluster_multicast",
                       .backend = device_backend,
                       .supports = require_maps,
                       .tile = {.rows = stream_rows, .columns = stream_columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif  // RUNG_SPLIT_ONCE
