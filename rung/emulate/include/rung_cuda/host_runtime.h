// SPDX-License-Identifier: Apache-2.0
// The runtime API for C++ sources that the host compiler compiles as C++14 or C++17: types,
// functions and qualifiers. Kernels can be declared and launched by their address, as with NVIDIA's
// headers; the simulator's own headers, which need C++20, are not included.
#pragma once

#include "rung_cuda/data_types.h"
#include "rung_cuda/memory_templates.h"
#include "rung_cuda/words.h"

template <class... Parameters>
inline cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                    void** arguments, size_t sharedBytes = 0,
                                    cudaStream_t stream = 0) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments,
                          sharedBytes, stream);
}
template <class... Parameters>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes,
                                         void (*kernel)(Parameters...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class... Parameters>
inline cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                        int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class... Parameters>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                 void (*kernel)(Parameters...),
                                                                 int blockSize,
                                                                 size_t sharedBytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(kernel), blockSize, sharedBytes);
}
