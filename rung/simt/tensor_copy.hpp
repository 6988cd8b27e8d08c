// SPDX-License-Identifier: Apache-2.0
// Tensor copies of the simulated GPU: the contents of its tensor maps, and copies of boxes, which
// are delayed like bulk copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

/// Contents of a simulated TensorMap. Axes are ordered as in a View: the last one is contiguous.
struct TensorMapFields {
  std::uint32_t mark;  // tag that distinguishes a tensor map from other bytes
  std::uint8_t rank;
  std::uint8_t element_bytes;
  std::uint8_t swizzle_chunks;  // mask of swizzled bits of a byte offset: 0, 0x10, 0x30, 0x70
  DType dtype;
  std::byte* data;
  std::int64_t shape[5];
  std::int64_t stride_bytes[5];
  std::uint16_t box[5];
  // For an im2col map: pixels per copy (0: tiled map), and the bounds of the window.
  std::uint16_t pixels;
  std::int16_t lower[3], upper[3];
  std::uint8_t steps[3];
  bool rounds_to_tf32;  // f32 elements are rounded to TF32 on load
};
inline constexpr std::uint32_t tensor_map_mark = 0x7e45a9u;

RUNG_API void tensor_load(void* to, const void* map, const int* at, int rank,
                          std::uint64_t* barrier, Place place);
RUNG_API void tensor_load_multicast(void* to, const void* map, const int* at, int rank,
                                    std::uint64_t* barrier, std::uint16_t ranks, Place place);
RUNG_API void tensor_store(const void* map, const int* at, int rank, const void* from, Place place);

/// Reduction of a tensor store in the map's type. Floats support add; 16-bit floats also min and
/// max; integers all.
enum class TensorReduction : std::uint8_t { add, min, max, bit_and, bit_or, bit_xor };
RUNG_API void tensor_reduce(const void* map, const int* at, int rank, const void* from,
                            TensorReduction reduction, Place place);

/// Loads an im2col box. `offsets`: rank - 2 offsets from the window's pixels to the pixels read.
RUNG_API void im2col_load(void* to, const void* map, const int* at, const int* offsets, int rank,
                          std::uint64_t* barrier, Place place);

}  // namespace rung::simt
