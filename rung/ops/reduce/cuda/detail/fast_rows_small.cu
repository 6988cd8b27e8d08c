// SPDX-License-Identifier: Apache-2.0
// The row kernels of reduce's top CUDA rung for f16, bf16, i32 and u8.
#include "rung/ops/reduce/cuda/120_single_pass_rows.cuh"

namespace rung::reduce_cuda::inline RUNG_TARGET {

bool run_fast_rows_small(const Reduce::Args& args, Context& context) {
  return visit<f16, bf16, std::int32_t, std::uint8_t>(args.x.dtype, [&]<class T>() {
    return visit_folds<T, true>(args, [&](const auto& fold) { run_rows(args, context, fold); });
  });
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
