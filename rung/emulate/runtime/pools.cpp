// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation, and advice about managed memory: order is the calls' order anyway.
#include <map>
#include <mutex>

#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/stream.hpp"

struct CUmemPoolHandle_st {
  std::map<cudaMemPoolAttr, unsigned long long> values;
};

namespace {

CUmemPoolHandle_st& default_pool() {
  static auto& pool = *new CUmemPoolHandle_st;
  return pool;
}

}  // namespace

using namespace rung::cuda;  // NOLINT: its implementation

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  if (stream_of(stream) == nullptr) return remember(cudaErrorInvalidResourceHandle);
  return remember(allocate(memory, bytes, cudaMemoryTypeDevice, "cudaMallocAsync"));
}
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t,
                                    cudaStream_t stream) {
  return cudaMallocAsync(memory, bytes, stream);
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  // A captured graph may still use it: then it stays until the program's end.
  const CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (there->capture != nullptr) return remember(cudaSuccess);
  return cudaFree(memory);
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = &default_pool();
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return remember(cudaSuccess); }
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  *pool = new CUmemPoolHandle_st;
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  if (pool != &default_pool()) delete pool;
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const bool word = attribute >= cudaMemPoolAttrReleaseThreshold;
  pool->values[attribute] = word ? *static_cast<unsigned long long*>(value)
                                 : static_cast<unsigned long long>(*static_cast<int*>(value));
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  unsigned long long now = pool->values[attribute];
  if (attribute == cudaMemPoolAttrUsedMemCurrent ||
      attribute == cudaMemPoolAttrReservedMemCurrent) {
    now = bytes_in_use();
  }
  if (attribute >= cudaMemPoolAttrReleaseThreshold) {
    *static_cast<unsigned long long*>(value) = now;
  } else {
    *static_cast<int*>(value) = static_cast<int>(now);
  }
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return remember(cudaSuccess); }
// One device, which may always.
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t, cudaMemLocation*) {
  *flags = cudaMemAccessFlagsProtReadWrite;
  return remember(cudaSuccess);
}

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
