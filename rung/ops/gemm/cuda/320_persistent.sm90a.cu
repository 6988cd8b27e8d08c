// SPDX-License-Identifier: Apache-2.0
// gemm / persistent
//
// Idea     one persistent block per SM loops over tiles. While its consumers write a tile of C, the
//          producer fetches the operands of the next; C is staged in shared memory, from which TMA
//          stores it while the consumers multiply again.
// Changes  against warp_specialized: the pipeline is filled once, not once per tile; tiles are in
//          an order that shares operands in L2; four tile widths, and split-K where C has few
//          tiles.
// Cost     as warp_specialized; C is written 16 rows by 128 bytes at a time.
// Limits   as wgmma_tma. The tensor cores idle while sums are staged; beta, bias and activations
//          lengthen this phase. A C that TMA cannot write, a bias that is a matrix, and beta
//          together with a residual use an epilogue by threads.
// Source   CUTLASS, "Persistent, cooperative kernels"; Triton's tutorials, grouped order of tiles.
#include "rung/cpu/split.hpp"  // types: float f16 bf16
#include "rung/ops/gemm/cuda/320_persistent.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_persistent(Context& context, const MappedOperands<RUNG_SPLIT_TYPE>& operands,
                    const TensorPlan& plan, void* partial) {
  launch_persistent(context, operands, plan, partial);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

using namespace gemm_cuda;

Work work(const Gemm::Args& args, const Context& context) {
  const TensorPlan plan = plan_tensor(args, context, persistent_tiles);
  return tensor_work(args, context, persistent_tiles[plan.tile], plan.slices);
}

void run(const Gemm::Args& args, Context& context) {
  const TensorPlan plan = plan_tensor(args, context, persistent_tiles);
  visit<float, f16, bf16>(
      args.a.dtype, [&]<class T>() { run_persistent(context, mapped_operands<T>(args), plan); });
}

const Rung<Gemm> self{{.name = "persistent",
                       .step = 320,
                       .after = "warp_specialized",
                       .backend = device_backend,
                       .supports = require_maps,
                       .tile = {.rows = persistent_rows, .columns = 256},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif  // RUNG_SPLIT_ONCE
