// SPDX-License-Identifier: Apache-2.0
// The kernels of gemm's stream_k for f16 operands.
#include "rung/ops/gemm/cuda/340_stream_k.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_stream_k(Context& context, const MappedOperands<f16>& operands, const TensorPlan& plan) {
  launch_stream_k(context, operands, plan);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
