// SPDX-License-Identifier: Apache-2.0
// The kernels of reduce's top CUDA rung for the plainest rows of f32 and f64.
#include "rung/ops/reduce/cuda/120_single_pass_straight_rows.cuh"

namespace rung::reduce_cuda::inline RUNG_TARGET {

bool run_straight_rows(const Reduce::Args& args, Context& context) {
  const DType type = args.x.dtype;
  if (type != DType::f32 && type != DType::f64) return run_straight_rows_small(args, context);
  return run_straight<float, double>(args, context);
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
