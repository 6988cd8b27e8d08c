// SPDX-License-Identifier: Apache-2.0
//
// Copies of strided elements to contiguous buffers, either unchanged or converted to a type that
// vector kernels process.
#pragma once

#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"

namespace rung::cpu {

/// Returns the type that gather() converts type x to: f32 for f16 and bf16, i32 for integers of up
/// to 32 bits, else x.
constexpr DType gathered_type(DType x) {
  if (x == DType::f16 || x == DType::bf16) return DType::f32;
  return is_floating(x) || x == DType::i64 ? x : DType::i32;
}

/// Copies `count` elements of type `from`, `stride` elements apart, to a contiguous buffer of type
/// gathered_type(from). Contiguous f16 and bf16 are converted in vectors; other strides cost a load
/// and a store per element.
RUNG_API void gather(DType from, const void* x, std::int64_t stride, std::int64_t count, void* to);

/// Copies n elements of `size` bytes (1, 2, 4 or 8) between strided arrays; strides in elements.
/// Reversed and contiguous elements are copied in vectors, others one at a time.
RUNG_API void copy_strided(std::int64_t size, const void* from, std::int64_t from_stride, void* to,
                           std::int64_t to_stride, std::int64_t n);

}  // namespace rung::cpu
