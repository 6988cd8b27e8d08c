// SPDX-License-Identifier: Apache-2.0
// The kernels of gemm's fp8_wgmma for A of e5m2 and B of e5m2.
#include "rung/ops/gemm/cuda/types/fp8_wgmma.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

template <>
void run_fp8_wgmma<e5m2, e5m2>(Context& context, const Fp8Call& call, const TensorPlan& plan,
                               float* partial) {
  launch_fp8_wgmma<e5m2, e5m2>(context, call, plan, partial);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
