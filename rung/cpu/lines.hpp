// SPDX-License-Identifier: Apache-2.0
//
// Rows of an array to buffers and back, as they are or converted. memcpy of a few KiB takes glibc's
// `rep movsb` on some CPUs, which is slow where source and destination are aligned differently;
// this moves vectors.
#pragma once

#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"

namespace rung::cpu {

/// Bytes as they are. While they are copied, as many from `next` on are prefetched into L1; null:
/// none.
RUNG_API void copy_line(const void* from, void* to, std::int64_t bytes, const void* next = nullptr);

/// Copies with non-temporal stores, for data that is not read soon. The caller ends with
/// end_streams(), which orders these stores before the thread's later accesses.
RUNG_API void stream_line(const void* from, void* to, std::int64_t bytes);
RUNG_API void end_streams();

/// Converts contiguous elements of f32, f16, bf16 or u8 to f32 and back: rounded to nearest even;
/// u8 is clamped to 0 to 255, and NaN becomes 0. Touches no byte beyond `count` elements; the
/// caller owns both. Memory-bound.
RUNG_API void widen_line(DType type, const void* from, float* to, std::int64_t count);
RUNG_API void narrow_line(const float* from, DType type, void* to, std::int64_t count);

}  // namespace rung::cpu
