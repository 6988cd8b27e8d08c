// SPDX-License-Identifier: Apache-2.0
// elementwise: the kernels of vectorized_16b in i32, i64 and u8.
#include "rung/ops/elementwise/cuda/040_vectorized_16b.cuh"

namespace rung::elementwise_cuda::inline RUNG_TARGET {

void run_vectorized_integer(const Elementwise::Args& args, Context& context) {
  run_vectorized<std::int32_t, std::int64_t, std::uint8_t>(args, context);
}

}  // namespace rung::elementwise_cuda::inline RUNG_TARGET
