// SPDX-License-Identifier: Apache-2.0
// CUDA arrays: memory of textures and surfaces.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "rung/emulate/runtime/api.hpp"

struct cudaArray {
  cudaChannelFormatDesc format;
  cudaExtent extent;  // in elements; 0 along missing axes
  unsigned flags;
  std::size_t element_bytes;
  std::unique_ptr<char[]> data;

  [[nodiscard]] std::size_t row_bytes() const { return extent.width * element_bytes; }
  [[nodiscard]] std::size_t rows() const { return extent.height == 0 ? 1 : extent.height; }
  [[nodiscard]] std::size_t slices() const { return extent.depth == 0 ? 1 : extent.depth; }
};

/// A mipmapped array. Level 0 is the largest; each further level halves the width, height and
/// depth.
struct cudaMipmappedArray {
  std::vector<std::unique_ptr<cudaArray>> levels;
};

namespace rung::cuda {

std::size_t element_bytes(const cudaChannelFormatDesc& format);
std::unique_ptr<cudaArray> make_array(const cudaChannelFormatDesc& format, cudaExtent extent,
                                      unsigned flags);
cudaError_t copy_3d(const cudaMemcpy3DParms& given);

}  // namespace rung::cuda
