// SPDX-License-Identifier: Apache-2.0
// Allocation and release, and asking of what kind an address is.
#include "rung/emulate/runtime/memory.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "rung/emulate/runtime/model.hpp"
#include "rung/emulate/runtime/stream.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;

// Between allocations lies memory that belongs to none, so that an overrun by some elements does
// not quietly hit the neighbour.
constexpr std::size_t alignment = 512;
constexpr std::size_t margin = 512;

struct Table {
  std::mutex mutex;
  std::map<const char*, Allocation> live;
  std::size_t bytes = 0;  // of those the runtime allocated
};
Table& table() {
  static Table& one = *new Table;  // never destroyed: programs free in static destructors
  return one;
}

std::size_t free_on_this_machine() {
  return static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::size_t bytes_in_use() {
  const std::lock_guard lock(table().mutex);
  return table().bytes;
}

cudaError_t allocate(void** memory, std::size_t bytes, cudaMemoryType type, const char* name,
                     unsigned flags, const void* code) {
  if (memory == nullptr) return cudaErrorInvalidValue;
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  if (bytes > device.totalGlobalMem - std::min(bytes_in_use(), device.totalGlobalMem) ||
      bytes > free_on_this_machine()) {
    return cudaErrorMemoryAllocation;
  }
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment + margin;
  auto* begin = static_cast<char*>(std::aligned_alloc(alignment, whole));
  if (begin == nullptr) return cudaErrorMemoryAllocation;
  std::memset(begin, simt::poison, whole);
  // Pages of managed memory come empty from the system, which programs count on.
  if (type == cudaMemoryTypeManaged) std::memset(begin, 0, bytes);
  {
    const std::lock_guard lock(table().mutex);
    table().live[begin] = {begin, bytes, type, false, flags};
    table().bytes += bytes;
  }
  // What the host may write by itself counts as written.
  record::register_memory({.begin = begin,
                           .bytes = bytes,
                           .initialised = type != cudaMemoryTypeDevice,
                           .freed_by_hand = true,
                           .name = name,
                           .code = code});
  *memory = begin;
  return cudaSuccess;
}

cudaError_t release(void* memory, bool host) {
  if (memory == nullptr) return cudaSuccess;
  Allocation found;
  {
    const std::lock_guard lock(table().mutex);
    const auto at = table().live.find(static_cast<char*>(memory));
    if (at != table().live.end()) found = at->second;
    const bool right =
        found.begin != nullptr && !found.registered && (found.type == cudaMemoryTypeHost) == host;
    if (!right) return cudaErrorInvalidValue;
    table().bytes -= found.bytes;
    table().live.erase(at);
  }
  record::unregister_memory(memory);
  std::memset(memory, simt::poison, found.bytes);  // who still reads it shall see it
  std::free(memory);
  return cudaSuccess;
}

Allocation find(const void* address) {
  const std::lock_guard lock(table().mutex);
  const auto* byte = static_cast<const char*>(address);
  auto after = table().live.upper_bound(byte);
  if (after == table().live.begin()) return {};
  const Allocation& candidate = (--after)->second;
  return byte < candidate.begin + candidate.bytes ? candidate : Allocation{};
}

void free_everything() {
  std::map<const char*, Allocation> live;
  {
    const std::lock_guard lock(table().mutex);
    live.swap(table().live);
    table().bytes = 0;
  }
  for (const auto& [begin, one] : live) {
    record::unregister_memory(begin);
    if (!one.registered) std::free(one.begin);
  }
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: its implementation

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (rung::simt::in_kernel() && memory != nullptr) {  // from the same heap as malloc
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
    // The host's memory stays: threads destroy their parameters here, which on a chip none does.
    if (find(memory).begin != nullptr) return cudaErrorInvalidValue;
    free_in_kernel(memory, __builtin_return_address(0));
    return cudaSuccess;
  }
  if (give_back_to_graph(memory)) return remember(cudaSuccess);
  const cudaError_t error = release(memory, false);
  if (error != cudaSuccess && device_failure() == cudaSuccess) {
    report_misuse("use_after_free",
                  "cudaFree of an address that is no allocation: freed before, or never allocated",
                  __builtin_return_address(0));
  }
  return remember(error);
}
cudaError_t cudaFreeHost(void* memory) { return remember(release(memory, true)); }

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned int flags) {
  if (memory == nullptr || bytes == 0) return remember(cudaErrorInvalidValue);
  if (find(memory).begin != nullptr) return remember(cudaErrorHostMemoryAlreadyRegistered);
  {
    const std::lock_guard lock(table().mutex);
    auto* begin = static_cast<char*>(memory);
    table().live[begin] = {begin, bytes, cudaMemoryTypeHost, true, flags};
  }
  record::register_memory({.begin = memory, .bytes = bytes, .name = "cudaHostRegister"});
  return remember(cudaSuccess);
}
cudaError_t cudaHostUnregister(void* memory) {
  {
    const std::lock_guard lock(table().mutex);
    const auto at = table().live.find(static_cast<char*>(memory));
    if (at == table().live.end() || !at->second.registered) {
      return remember(cudaErrorHostMemoryNotRegistered);
    }
    table().live.erase(at);
  }
  record::unregister_memory(memory);
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
  cudaGetDeviceProperties(&device, 0);
  *total = device.totalGlobalMem;
  *free = *total - std::min(*total, bytes_in_use());
  return remember(cudaSuccess);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* to, const void* memory) {
  if (to == nullptr) return remember(cudaErrorInvalidValue);
  const Allocation found = find(memory);
  auto* address = const_cast<void*>(memory);
  *to = {found.type, found.begin != nullptr ? 0 : cudaInvalidDeviceId, nullptr, nullptr};
  if (found.begin != nullptr) to->devicePointer = address;
  if (found.type == cudaMemoryTypeHost || found.type == cudaMemoryTypeManaged) {
    to->hostPointer = address;
  }
  return remember(cudaSuccess);
}
