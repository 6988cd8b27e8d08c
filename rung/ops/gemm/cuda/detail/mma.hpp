// SPDX-License-Identifier: Apache-2.0
// mma.sync on tiles that hold both operands with k along the rows.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/ptx/matrix.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

template <class T>
__device__ void multiply(float (&sums)[4], const std::uint32_t (&a)[4],
                         const std::uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, f16>) {
    ptx::mma_m16n8k16_f16(sums, a, b, sums);
  } else if constexpr (std::is_same_v<T, bf16>) {
    ptx::mma_m16n8k16_bf16(sums, a, b, sums);
  } else {
    ptx::mma_m16n8k8_tf32(sums, a, b, sums);
  }
}

/// The word at a row and a word of k.
template <class T, int Pitch>
__device__ std::uint32_t word(const T (&row)[Pitch], int at) {
  typedef std::uint32_t Word __attribute__((may_alias));
  return reinterpret_cast<const Word*>(&row[0])[at];
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
