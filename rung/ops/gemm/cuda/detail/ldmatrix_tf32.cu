// SPDX-License-Identifier: Apache-2.0
// The kernels of gemm's ldmatrix_pipeline for f32 operands as tf32.
#include "rung/ops/gemm/cuda/220_ldmatrix_pipeline.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_ldmatrix_pipeline(Context& context, const Finish<float>& finish, const TensorPlan& plan) {
  launch_ldmatrix_pipeline(context, finish, plan);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
