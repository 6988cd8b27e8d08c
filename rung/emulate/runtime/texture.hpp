// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects.
#pragma once

#include <cstddef>
#include <vector>

#include "rung/emulate/runtime/array.hpp"

namespace rung::cuda {

struct Texture {
  cudaResourceDesc resource;
  cudaTextureDesc description;
  cudaChannelFormatDesc format;
  const char* data;
  long long width, height, depth;  // extents in elements; 1 along missing axes
  std::size_t row, slice;
  std::vector<Texture> smaller;  // further levels, if it is a mipmapped array
};
struct Surface {
  cudaArray* array;
};

}  // namespace rung::cuda
