// SPDX-License-Identifier: Apache-2.0
//
// Strided elements as contiguous ones: of the few types that vector kernels take, or as they are.
#pragma once

#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"

namespace rung::cpu {

/// Returns the type that gather() converts to: f32 for f16 and bf16, i32 for integers of up to 32
/// bits, else x.
constexpr DType gathered_type(DType x) {
  if (x == DType::f16 || x == DType::bf16) return DType::f32;
  return is_floating(x) || x == DType::i64 ? x : DType::i32;
}

/// Copies `count` elements of type `from`, `stride` elements apart, to contiguous ones of
/// gathered_type(from). The caller owns both. Contiguous f16 and bf16 are converted in vectors;
/// other strides cost a load and a store per element.
RUNG_API void gather(DType from, const void* x, std::int64_t stride, std::int64_t count, void* to);

/// Copies n elements of `size` bytes, 1, 2, 4 or 8, from one stride to another, in elements. A load
/// and a store per element; in vectors for reversed and contiguous ones.
RUNG_API void copy_strided(std::int64_t size, const void* from, std::int64_t from_stride, void* to,
                           std::int64_t to_stride, std::int64_t n);

}  // namespace rung::cpu
