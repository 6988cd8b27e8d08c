// SPDX-License-Identifier: Apache-2.0
// Allocation functions and pointer queries of the runtime API.
#include <algorithm>

#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/stream.hpp"
#include "rung/emulate/runtime/stream_order.hpp"
#include "rung/simt/simulator.hpp"

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (rung::simt::in_kernel() && memory != nullptr) {  // in a kernel: from the heap of malloc
    *memory = allocate_in_kernel(bytes);
    return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  }
  return remember(allocate(memory, bytes, cudaMemoryTypeDevice, "cudaMalloc"));
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes, unsigned int flags) {
  return remember(allocate(memory, bytes, cudaMemoryTypeHost, "cudaMallocHost", flags));
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned int flags) {
  return remember(allocate(memory, bytes, cudaMemoryTypeHost, "cudaHostAlloc", flags));
}
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned int flags) {
  if (bytes == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) {
    return remember(cudaErrorInvalidValue);
  }
  return remember(allocate(memory, bytes, cudaMemoryTypeManaged, "cudaMallocManaged", flags));
}
cudaError_t cudaMallocPitch(void** memory, std::size_t* pitch, std::size_t width,
                            std::size_t height) {
  if (pitch == nullptr) return remember(cudaErrorInvalidValue);
  *pitch = (width + 511) / 512 * 512;
  return remember(allocate(memory, *pitch * height, cudaMemoryTypeDevice, "cudaMallocPitch"));
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  std::size_t pitch = 0;
  void* there = nullptr;
  const cudaError_t error =
      cudaMallocPitch(&there, &pitch, extent.width, extent.height * extent.depth);
  if (error == cudaSuccess) *memory = {there, pitch, extent.width, extent.height};
  return error;
}
cudaError_t cudaFree(void* memory) {
  if (rung::simt::in_kernel()) {
    // Memory that host code has allocated is not freed: in the simulator, unlike on a GPU, each
    // thread destroys the kernel's parameters, whose destructors may call cudaFree().
    if (find(memory).begin != nullptr) return cudaErrorInvalidValue;
    free_in_kernel(memory, __builtin_return_address(0));
    return cudaSuccess;
  }
  if (memory != nullptr) await_device(current_device());
  if (const Allocation found = find(memory); found.pool != nullptr) {
    // Pool memory is released immediately, even if work in flight uses it.
    note_free(found.begin, found.bytes);
  } else if (memory != nullptr) {
    host_waited_for_device(current_device());
  }
  return remember(free_on_device(memory, __builtin_return_address(0)));
}
cudaError_t cudaFreeHost(void* memory) {
  if (memory != nullptr) await_device(current_device());
  note_free(memory, find(memory).bytes);
  return remember(release(memory, true, __builtin_return_address(0)));
}

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned int flags) {
  if (memory == nullptr || bytes == 0) return remember(cudaErrorInvalidValue);
  if (find(memory).begin != nullptr) return remember(cudaErrorHostMemoryAlreadyRegistered);
  add_region({.begin = static_cast<char*>(memory),
              .bytes = bytes,
              .type = cudaMemoryTypeHost,
              .origin = Origin::registered,
              .flags = flags,
              .device = current_device()},
             "cudaHostRegister", true, {}, nullptr);
  return remember(cudaSuccess);
}
cudaError_t cudaHostUnregister(void* memory) {
  const Allocation found = find(memory);
  if (found.begin != memory || found.origin != Origin::registered) {
    return remember(cudaErrorHostMemoryNotRegistered);
  }
  note_free(found.begin, found.bytes);
  remove_region(found.begin);
  return remember(cudaSuccess);
}
cudaError_t cudaHostGetDevicePointer(void** there, void* here, unsigned int) {
  const bool known = find(here).type == cudaMemoryTypeHost;
  *there = known ? here : nullptr;
  return remember(known ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostGetFlags(unsigned int* flags, void* memory) {
  const Allocation found = find(memory);
  if (found.type != cudaMemoryTypeHost) return remember(cudaErrorInvalidValue);
  *flags = found.flags | cudaHostAllocMapped;
  return remember(cudaSuccess);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, current_device());
  *total = device.totalGlobalMem;
  *free = *total - std::min(*total, bytes_in_use());
  return remember(cudaSuccess);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* to, const void* memory) {
  if (to == nullptr) return remember(cudaErrorInvalidValue);
  const Allocation found = find(memory);
  auto* address = const_cast<void*>(memory);
  *to = {found.type, found.begin != nullptr ? found.device : cudaInvalidDeviceId, nullptr, nullptr};
  if (found.begin != nullptr) to->devicePointer = address;
  if (found.type == cudaMemoryTypeHost || found.type == cudaMemoryTypeManaged) {
    to->hostPointer = address;
  }
  return remember(cudaSuccess);
}
