// SPDX-License-Identifier: Apache-2.0
// elementwise: the kernels of vectorized_16b in bf16.
#include "rung/ops/elementwise/cuda/040_vectorized_16b.cuh"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

void run_vectorized_bf16(const Elementwise::Args& args, Context& context) {
  run_vectorized<bf16>(args, context);
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
