// SPDX-License-Identifier: Apache-2.0
// Host side shared by gemm's CUDA rungs: supported calls, traffic and time.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/ops/gemm/shared/cuda/facts.hpp"
#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

inline Support require_f32(const Gemm::Args& args, const Context&) {
  return args.a.dtype == DType::f32 ? supported : unsupported("only f32 operands");
}

/// Accepts the types that with_product() dispatches.
inline Support require_wide_types(const Gemm::Args& args, const Context&) {
  return args.has_bytes() ? unsupported("8-bit operands") : supported;
}

/// Accepts the types that tensor cores multiply; f32 only if the caller permits tf32.
inline Support require_tensor_cores(const Gemm::Args& args) {
  if (args.a.dtype == DType::f64 || args.has_bytes()) {
    return unsupported("this rung multiplies f32, f16 and bf16");
  }
  if (args.a.dtype == DType::f32 && args.precision != Precision::tf32) {
    return unsupported("f32 operands would be rounded to tf32, which needs Precision::tf32");
  }
  return supported;
}

/// Returns whether rows are contiguous and start at multiples of 16 bytes, as 16-byte loads
/// require.
inline bool has_aligned_rows(const ConstTensorRef& matrix) {
  const auto width = static_cast<std::int64_t>(16 / size_of(matrix.dtype));
  return (matrix.strides[2] == 1 || matrix.shape[2] <= 1) &&
         (matrix.strides[1] % width == 0 || matrix.shape[1] <= 1) &&
         (matrix.strides[0] % width == 0 || matrix.shape[0] <= 1) &&
         reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0;
}

inline Support require_aligned_operands(const Gemm::Args& args) {
  if (!has_aligned_rows(args.a)) {
    return unsupported("A's rows must be contiguous and start at multiples of 16 bytes");
  }
  if (!has_aligned_rows(args.b)) {
    return unsupported("B's rows must be contiguous and start at multiples of 16 bytes");
  }
  return supported;
}
inline Support require_aligned_rows(const Gemm::Args& args, const Context& context) {
  const Support f32 = require_f32(args, context);
  return f32 ? require_aligned_operands(args) : f32;
}
inline Support require_aligned_16_bit_rows(const Gemm::Args& args, const Context&) {
  if (args.a.dtype != DType::f16 && args.a.dtype != DType::bf16) {
    return unsupported("only f16 and bf16 operands");
  }
  return require_aligned_operands(args);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
