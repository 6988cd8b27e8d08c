// SPDX-License-Identifier: Apache-2.0
// Templates of the runtime API that take a kernel as a typed function pointer.
#pragma once

#include "rung_cuda/launch.h"
#include "rung_cuda/memory_templates.h"
#include "rung_cuda/runtime_api.h"

namespace rung::cuda {
/// Records the error of a call whose result the program discards. It is reported at the program's
/// end unless the program has queried its last error by then.
void ignored(cudaError_t error, const char* call, Place place = Place::current());
/// Marks this thread's next query of a stream or event as one whose answer the program discards.
void discard_answer();
}  // namespace rung::cuda

// Kernels as typed function pointers: the signature is known, so the kernel can also be launched by
// its address.
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
