// SPDX-License-Identifier: Apache-2.0
//
// Rows of an array to buffers and back. memcpy of a few KiB takes glibc's `rep movsb` on some CPUs,
// which is slow where source and destination are aligned differently; this moves vectors.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"

namespace rung::cpu {

/// Bytes as they are. While they are copied, as many from `next` on are prefetched into L1; null:
/// none.
RUNG_API void copy_line(const void* from, void* to, std::int64_t bytes, const void* next = nullptr);

/// With non-temporal stores, where `to` is not read soon. Whoever streams ends with end_streams(),
/// which orders these stores before what the thread does next.
RUNG_API void stream_line(const void* from, void* to, std::int64_t bytes);
RUNG_API void end_streams();

}  // namespace rung::cpu
