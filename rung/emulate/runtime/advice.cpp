// SPDX-License-Identifier: Apache-2.0
// cudaMemAdvise and related functions for managed memory. They have no effect.
#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/memory.hpp"

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, int, cudaStream_t) {
  const Allocation found = find(memory);
  const bool good = found.type == cudaMemoryTypeManaged &&
                    static_cast<const char*>(memory) + bytes <= found.begin + found.bytes;
  return remember(good ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, cudaMemLocation,
                                 unsigned int, cudaStream_t stream) {
  return cudaMemPrefetchAsync(memory, bytes, 0, stream);
}
cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, cudaMemoryAdvise, int) {
  return cudaMemPrefetchAsync(memory, bytes, 0, nullptr);
}
cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, cudaMemoryAdvise,
                          cudaMemLocation) {
  return cudaMemPrefetchAsync(memory, bytes, 0, nullptr);
}
