// SPDX-License-Identifier: Apache-2.0
// elementwise: the kernels of vectorized_16b in f16.
#include "rung/ops/elementwise/cuda/040_vectorized_16b.cuh"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

void run_vectorized_f16(const Elementwise::Args& args, Context& context) {
  run_vectorized<f16>(args, context);
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
