// SPDX-License-Identifier: Apache-2.0
// The kernels of gemm's persistent for f16 operands.
#include "rung/ops/gemm/cuda/320_persistent.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_persistent(Context& context, const MappedOperands<f16>& operands, const TensorPlan& plan,
                    void* partial) {
  launch_persistent(context, operands, plan, partial);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
