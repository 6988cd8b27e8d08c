// SPDX-License-Identifier: Apache-2.0
// implicit_gemm for f64: kernels are spread over files that compile at the same time.
#include "rung/ops/conv_backward_data/cuda/020_implicit_gemm.cuh"

namespace rung::conv_cuda::inline RUNG_TARGET {

void multiply_doubles(const Gathered& g, Context& context) {
  is_divided(g) ? multiply_gathered<double, true>(g, context)
                : multiply_gathered<double, false>(g, context);
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
