// SPDX-License-Identifier: Apache-2.0
// Templates of the runtime API that concern memory: allocation of T**, symbols, extents. They
// require only C++14 and no code of the simulator.
#pragma once

#include <type_traits>

#include "rung_cuda/runtime_api.h"

namespace rung {
namespace cuda {
/// Allocates for a pointer, possibly to const.
template <class T>
void** untyped(T** pointer) {
  return reinterpret_cast<void**>(const_cast<std::remove_cv_t<T>**>(pointer));
}
}  // namespace cuda
}  // namespace rung

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

// Symbols: a device variable is an ordinary variable of the program, passed directly.
namespace rung {
namespace cuda {
/// Returns the default stream for synchronous calls.
inline cudaStream_t synchronous() { return reinterpret_cast<cudaStream_t>(0x3); }
cudaError_t copy_symbol(void* symbol, size_t size, void* memory, size_t bytes, size_t offset,
                        bool to_symbol, cudaMemcpyKind kind, cudaStream_t stream);
}  // namespace cuda
}  // namespace rung

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

// Constructors
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  return {width, height, depth};
}
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void* memory, size_t pitch, size_t width, size_t height) {
  return {memory, pitch, width, height};
}
