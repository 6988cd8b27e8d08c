// SPDX-License-Identifier: Apache-2.0
// The row kernels of reduce's top CUDA rung for f32 and f64; the others are compiled in
// fast_rows_small.cu, as all together take too long for one file.
#include "rung/ops/reduce/cuda/120_single_pass_rows.cuh"

namespace rung::reduce_cuda::inline RUNG_TARGET {

bool run_fast_rows(const Reduce::Args& args, Context& context) {
  const DType type = args.x.dtype;
  if (type != DType::f32 && type != DType::f64) return run_fast_rows_small(args, context);
  return visit<float, double>(type, [&]<class T>() {
    return visit_folds<T, true>(args, [&](const auto& fold) { run_rows(args, context, fold); });
  });
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
