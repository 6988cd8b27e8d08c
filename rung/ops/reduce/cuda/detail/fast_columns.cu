// SPDX-License-Identifier: Apache-2.0
// The column kernels of reduce's top CUDA rung.
#include "rung/ops/reduce/cuda/120_single_pass_columns.cuh"

namespace rung::reduce_cuda::inline RUNG_TARGET {

bool run_fast_columns(const Reduce::Args& args, Context& context) {
  return visit<float, double, f16, bf16, std::int32_t>(args.x.dtype, [&]<class T>() {
    return visit_folds<T, false>(args, [&](const auto& fold) { run_columns(args, context, fold); });
  });
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
