// SPDX-License-Identifier: Apache-2.0
// 8-bit operands on a GPU: floats of two formats, which kernels see as bytes, their block scales,
// and integers.
#pragma once

#include <cstdint>

#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Scale factors per 128 steps of k and row of A, and per 128 steps of k and 128 columns of B; 1 if
/// the view has no data.
struct BlockScales {
  View<const float, 3> a, b;

  /// Returns the factor of a row or of a block of columns; k_block and column_block are block
  /// indices.
  [[nodiscard]] __device__ float of_a(std::int64_t batch, std::int64_t row,
                                      std::int64_t k_block) const {
    return a.data != nullptr ? a(batch, row, k_block) : 1.0F;
  }
  [[nodiscard]] __device__ float of_b(std::int64_t batch, std::int64_t k_block,
                                      std::int64_t column_block) const {
    return b.data != nullptr ? b(batch, k_block, column_block) : 1.0F;
  }
};
inline BlockScales block_scales(const Gemm::Args& args) {
  BlockScales scales{};
  if (args.scale_a.data != nullptr) scales.a = args.scale_a.view<const float, 3>();
  if (args.scale_b.data != nullptr) scales.b = args.scale_b.view<const float, 3>();
  return scales;
}

/// Returns the call with operands of either format typed as e4m3; the kernel knows the real format.
inline Gemm::Args as_bytes(const Gemm::Args& args) {
  Gemm::Args bytes = args;
  bytes.a.dtype = bytes.b.dtype = DType::e4m3;
  return bytes;
}

inline Support require_small_floats(const Gemm::Args& args) {
  return args.a.dtype == DType::e4m3 || args.a.dtype == DType::e5m2
             ? supported
             : unsupported("this rung multiplies e4m3 and e5m2");
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
