// SPDX-License-Identifier: Apache-2.0
// The kernels of reduce's top CUDA rung for the plainest rows of f16, bf16, i32 and u8.
#include "rung/ops/reduce/cuda/120_single_pass_straight_rows.cuh"

namespace rung::reduce_cuda::inline RUNG_TARGET {

bool run_straight_rows_small(const Reduce::Args& args, Context& context) {
  return run_straight<f16, bf16, std::int32_t, std::uint8_t>(args, context);
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
