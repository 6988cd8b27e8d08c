// SPDX-License-Identifier: Apache-2.0
// implicit_gemm for strided layers of f16 and bf16: kernels are spread over files that compile at
// the same time.
#include "rung/ops/conv_backward_data/cuda/020_implicit_gemm.cuh"

namespace rung::conv_cuda::inline RUNG_TARGET {

void multiply_half_phases(const Gathered& g, Context& context) {
  visit<f16, bf16>(g.dtype, [&]<class T>() { multiply_gathered<T, true>(g, context); });
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
