// SPDX-License-Identifier: Apache-2.0
// elementwise: the kernels of vectorised_16b in f64.
#include "rung/ops/elementwise/cuda/040_vectorised_16b.cuh"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

void run_vectorised_f64(const Elementwise::Args& args, Context& context) {
  run_vectorised<double>(args, context);
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
