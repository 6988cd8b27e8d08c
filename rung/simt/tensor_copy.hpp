// SPDX-License-Identifier: Apache-2.0
// Tensor copies of the simulated GPU: what its tensor maps hold, and the copies of boxes, which
// are late as bulk copies are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

/// The contents of a simulated TensorMap. Axes as in a View, the last one contiguous.
struct TensorMapFields {
  std::uint32_t mark;  // tells a map from other bytes
  std::uint8_t rank;
  std::uint8_t element_bytes;
  std::uint8_t swizzle_chunks;  // of a chunk's number, in place: 0, 0x10, 0x30 or 0x70
  std::byte* data;
  std::int64_t shape[5];
  std::int64_t stride_bytes[5];
  std::uint16_t box[5];
};
inline constexpr std::uint32_t tensor_map_mark = 0x7e45a9u;

RUNG_API void tensor_load(void* to, const void* map, const int* at, int rank,
                          std::uint64_t* barrier, Place place);
RUNG_API void tensor_load_multicast(void* to, const void* map, const int* at, int rank,
                                    std::uint64_t* barrier, std::uint16_t ranks, Place place);
RUNG_API void tensor_store(const void* map, const int* at, int rank, const void* from, Place place);

}  // namespace rung::simt
