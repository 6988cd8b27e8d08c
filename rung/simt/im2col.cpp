// SPDX-License-Identifier: Apache-2.0
// im2col boxes: consecutive pixels of an image, as rows of a convolution's matrix operand.
#include <algorithm>
#include <cstring>

#include "rung/simt/copy_engine.hpp"

namespace rung::simt {
namespace {

constexpr std::size_t chunk_bytes = 16;

/// Advances `at` to the next pixel of the window; the last spatial axis varies fastest, images
/// slowest. `at` is ordered as in a View: images first, channels last.
void advance(const TensorMapFields& map, int (&at)[5]) {
  for (int axis = map.rank - 2; axis >= 1; --axis) {
    const int spatial = axis - 1;
    at[axis] += map.steps[spatial];
    if (at[axis] < map.shape[axis] + map.upper[spatial]) return;
    at[axis] = map.lower[spatial];
  }
  ++at[0];
}

}  // namespace

void load_pixels(const CopyShape& shape, std::byte* to, const std::byte* block_memory) {
  const TensorMapFields& map = shape.map;
  const int inner = map.rank - 1;
  const std::size_t row_bytes = std::size_t{map.box[inner]} * map.element_bytes;
  const auto base = static_cast<std::size_t>(to - block_memory);
  const std::int64_t first =
      std::clamp<std::int64_t>(-std::int64_t{shape.at[inner]}, 0, map.box[inner]);
  const std::int64_t last =
      std::clamp<std::int64_t>(map.shape[inner] - shape.at[inner], first, map.box[inner]);
  int at[5];
  std::copy(std::begin(shape.at), std::end(shape.at), at);
  std::byte row[256 * 8];
  for (std::size_t pixel = 0; pixel < map.pixels; ++pixel, advance(map, at)) {
    bool exists = at[0] >= 0 && at[0] < map.shape[0];
    std::int64_t byte = std::int64_t{at[0]} * map.stride_bytes[0];
    for (int axis = 1; axis < inner; ++axis) {
      const std::int64_t index = std::int64_t{at[axis]} + shape.offsets[axis - 1];
      exists &= index >= 0 && index < map.shape[axis];
      byte += index * map.stride_bytes[axis];
    }
    std::memset(row, 0, row_bytes);
    if (exists && first < last) {
      std::memcpy(row + first * map.element_bytes,
                  map.data + byte + (shape.at[inner] + first) * map.element_bytes,
                  static_cast<std::size_t>((last - first) * map.element_bytes));
    }
    for (std::size_t chunk = 0; chunk < row_bytes; chunk += chunk_bytes) {
      const std::size_t offset = swizzled_offset(map, base + pixel * row_bytes + chunk) - base;
      std::memcpy(to + offset, row + chunk, chunk_bytes);
    }
  }
}

}  // namespace rung::simt
