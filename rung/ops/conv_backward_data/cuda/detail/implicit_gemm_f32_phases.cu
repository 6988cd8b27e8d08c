// SPDX-License-Identifier: Apache-2.0
// implicit_gemm for strided layers of f32: kernels are spread over files that compile at the same
// time.
#include "rung/ops/conv_backward_data/cuda/020_implicit_gemm.cuh"

namespace rung::conv_cuda::inline RUNG_TARGET {

void multiply_float_phases(const Gathered& g, Context& context) {
  multiply_gathered<float, true>(g, context);
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
