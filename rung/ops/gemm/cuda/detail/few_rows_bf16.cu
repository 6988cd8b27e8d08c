// SPDX-License-Identifier: Apache-2.0
// few_rows for bf16 operands: kernels are spread over files that compile at the same time.
#include "rung/ops/gemm/cuda/shapes/few_rows.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

void run_few_rows(Context& context, const Finish<bf16>& finish, const FewPlan& plan) {
  launch_few_rows(context, finish, plan);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
