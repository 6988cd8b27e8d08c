// SPDX-License-Identifier: Apache-2.0
//
// Copies between rows of an array and buffers, unchanged or converted. memcpy of a few KiB uses
// `rep movsb` in glibc on some CPUs, which is slow if source and destination are aligned
// differently; these functions copy in vectors.
#pragma once

#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"

namespace rung::cpu {

/// Copies bytes, and meanwhile prefetches as many bytes from `next` on into L1; null: none.
RUNG_API void copy_line(const void* from, void* to, std::int64_t bytes, const void* next = nullptr);

/// Copies with non-temporal stores, for data that is not read again soon. The caller must then call
/// end_streams(), which orders these stores before the thread's later accesses.
RUNG_API void stream_line(const void* from, void* to, std::int64_t bytes);
RUNG_API void end_streams();

/// widen_line() converts contiguous f32, f16, bf16 or u8 elements to f32. narrow_line() converts
/// back, rounding to nearest even; for u8 it clamps to [0, 255], and NaN becomes 0. Both access
/// exactly `count` elements and are memory-bound.
RUNG_API void widen_line(DType type, const void* from, float* to, std::int64_t count);
RUNG_API void narrow_line(const float* from, DType type, void* to, std::int64_t count);

}  // namespace rung::cpu
