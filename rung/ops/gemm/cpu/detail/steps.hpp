// SPDX-License-Identifier: Apache-2.0
// Support check of the rungs from `simd_tile` to `packed_b`: f32, C = A B. packed_simd supports
// every call.
#pragma once

#include "rung/ops/gemm/cpu/detail/engine.hpp"

namespace rung::gemm_cpu {

inline Support supports_plain_f32(const Gemm::Args& args, const Context&) {
  const RowMajorProduct call = row_major_product(args);
  if (call.in != DType::f32 || call.out != DType::f32) return unsupported("f32 only");
  if (call.alpha != 1 || call.beta != 0) return unsupported("C = A B: alpha 1 and beta 0");
  if (call.has_epilogue()) return unsupported("no bias and no activation");
  if (call.b.column != 1 || call.c.column != 1) {
    return unsupported("contiguous rows of B and C only");
  }
  return supported;
}

}  // namespace rung::gemm_cpu
