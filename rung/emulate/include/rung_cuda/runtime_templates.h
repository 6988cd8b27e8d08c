// SPDX-License-Identifier: Apache-2.0
// Templates of the runtime API: allocation through T**, symbols, kernels by function type.
#pragma once

#include "rung_cuda/launch.h"
#include "rung_cuda/runtime_api.h"

namespace rung::cuda {
/// Records the error of a call whose result the program discards. It is reported at the program's
/// end unless the program has queried its last error by then.
void ignored(cudaError_t error, const char* call, Place place = Place::current());

/// Converts the address of a pointer, possibly to const, to void** for an allocation.
template <class T>
void** untyped(T** pointer) {
  return reinterpret_cast<void**>(const_cast<std::remove_cv_t<T>**>(pointer));
}
}  // namespace rung::cuda

template <class T>
inline cudaError_t cudaMalloc(T** memory, size_t bytes) {
  return cudaMalloc(rung::cuda::untyped(memory), bytes);
}
template <class T>
inline cudaError_t cudaMallocHost(T** memory, size_t bytes, unsigned int flags = 0) {
  return cudaMallocHost(rung::cuda::untyped(memory), bytes, flags);
}
template <class T>
inline cudaError_t cudaHostAlloc(T** memory, size_t bytes, unsigned int flags) {
  return cudaHostAlloc(rung::cuda::untyped(memory), bytes, flags);
}
template <class T>
inline cudaError_t cudaHostGetDevicePointer(T** there, void* here, unsigned int flags) {
  return cudaHostGetDevicePointer(rung::cuda::untyped(there), here, flags);
}
template <class T>
inline cudaError_t cudaMallocManaged(T** memory, size_t bytes, unsigned int flags = 1) {
  return cudaMallocManaged(rung::cuda::untyped(memory), bytes, flags);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** memory, size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(rung::cuda::untyped(memory), bytes, stream);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** memory, size_t bytes, cudaMemPool_t pool,
                                   cudaStream_t stream) {
  return cudaMallocFromPoolAsync(rung::cuda::untyped(memory), bytes, pool, stream);
}
template <class T>
inline cudaError_t cudaMallocFromPoolAsync(T** memory, size_t bytes, cudaMemPool_t pool,
                                           cudaStream_t stream) {
  return cudaMallocFromPoolAsync(rung::cuda::untyped(memory), bytes, pool, stream);
}
template <class T>
inline cudaError_t cudaMallocPitch(T** memory, size_t* pitch, size_t width, size_t height) {
  return cudaMallocPitch(rung::cuda::untyped(memory), pitch, width, height);
}

// Symbols. A device variable is an ordinary variable of the program, passed directly.
namespace rung::cuda {
/// Returns the default stream for synchronous calls.
inline cudaStream_t synchronous() { return reinterpret_cast<cudaStream_t>(0x3); }
cudaError_t copy_symbol(void* symbol, size_t size, void* memory, size_t bytes, size_t offset,
                        bool to_symbol, cudaMemcpyKind kind, cudaStream_t stream);
}  // namespace rung::cuda

template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes,
                                      size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return rung::cuda::copy_symbol(const_cast<T*>(&symbol), sizeof(T), const_cast<void*>(from), bytes,
                                 offset, true, kind, rung::cuda::synchronous());
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return rung::cuda::copy_symbol(const_cast<T*>(&symbol), sizeof(T), to, bytes, offset, false, kind,
                                 rung::cuda::synchronous());
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t stream = 0) {
  return rung::cuda::copy_symbol(const_cast<T*>(&symbol), sizeof(T), const_cast<void*>(from), bytes,
                                 offset, true, kind, stream);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind, cudaStream_t stream = 0) {
  return rung::cuda::copy_symbol(const_cast<T*>(&symbol), sizeof(T), to, bytes, offset, false, kind,
                                 stream);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  *address = const_cast<void*>(static_cast<const void*>(&symbol));
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) {
  *bytes = sizeof(T);
  return cudaSuccess;
}

// Kernels by function type. Its signature also registers a kernel by address.
namespace rung::cuda {
template <class... Parameters>
const void* known(void (*kernel)(Parameters...)) {
  register_kernel(describe(kernel, nullptr));
  return reinterpret_cast<const void*>(kernel);
}
cudaError_t launch_extended(const cudaLaunchConfig_t& given, const void* code, Closure closure,
                            Place place);
}  // namespace rung::cuda

template <class... Parameters>
inline cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                    void** arguments, size_t sharedBytes = 0,
                                    cudaStream_t stream = 0) {
  return cudaLaunchKernel(rung::cuda::known(kernel), grid, block, arguments, sharedBytes, stream);
}
template <class... Parameters>
inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                               void** arguments, size_t sharedBytes = 0,
                                               cudaStream_t stream = 0) {
  return cudaLaunchCooperativeKernel(rung::cuda::known(kernel), grid, block, arguments, sharedBytes,
                                     stream);
}
template <class... Parameters, class... Arguments>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config,
                                      void (*kernel)(Parameters...), Arguments&&... arguments) {
  const auto call = [kernel, ... values = Parameters(static_cast<Arguments&&>(arguments))]()
                        RUNG_UNSEEN { kernel(const_cast<Parameters&>(values)...); };
  return rung::cuda::launch_extended(*config, rung::cuda::known(kernel),
                                     rung::cuda::make_closure(call), rung::cuda::Place::current());
}
template <class... Parameters>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes,
                                         void (*kernel)(Parameters...)) {
  return cudaFuncGetAttributes(attributes, rung::cuda::known(kernel));
}
template <class... Parameters>
inline cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                        int value) {
  return cudaFuncSetAttribute(rung::cuda::known(kernel), attribute, value);
}
template <class... Parameters>
inline cudaError_t cudaFuncSetCacheConfig(void (*kernel)(Parameters...), cudaFuncCache config) {
  return cudaFuncSetCacheConfig(rung::cuda::known(kernel), config);
}
template <class... Parameters>
inline cudaError_t cudaFuncSetSharedMemConfig(void (*kernel)(Parameters...),
                                              cudaSharedMemConfig config) {
  return cudaFuncSetSharedMemConfig(rung::cuda::known(kernel), config);
}
template <class... Parameters>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                 void (*kernel)(Parameters...),
                                                                 int blockSize,
                                                                 size_t sharedBytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, rung::cuda::known(kernel), blockSize,
                                                       sharedBytes);
}
template <class T, class SharedBytes>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, T kernel,
                                                                  SharedBytes sharedBytes,
                                                                  int limit = 0) {
  int device = 0, processors = 0, best = 0;
  cudaFuncAttributes attributes;
  if (cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess &&
      (limit <= 0 || limit > attributes.maxThreadsPerBlock)) {
    limit = attributes.maxThreadsPerBlock;  // from the kernel's launch bounds
  }
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  *grid = *block = 0;
  for (int size = limit > 0 && limit < 1024 ? limit : 1024; size > 0;
       size -= size % 32 ? size % 32 : 32) {
    int blocks = 0;
    const cudaError_t error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, size, sharedBytes(size));
    if (error != cudaSuccess) return error;
    if (blocks * size > best) {
      best = blocks * size;
      *block = size;
      *grid = blocks * processors;
    }
  }
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, T kernel,
                                                      size_t sharedBytes = 0, int limit = 0) {
  const auto same = [=](int) { return sharedBytes; };
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(grid, block, kernel, same, limit);
}

// Constructors
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  return {width, height, depth};
}
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void* memory, size_t pitch, size_t width, size_t height) {
  return {memory, pitch, width, height};
}
