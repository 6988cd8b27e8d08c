// SPDX-License-Identifier: Apache-2.0
// Interprocess memory: maps allocations of other processes.
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/pools.hpp"
#include "rung/emulate/runtime/tasks.hpp"

namespace rung::cuda {
namespace {

/// Opened handle. Opening it again returns the same address; it must be closed as often.
struct Opened {
  std::mutex mutex;
  struct One {
    char* begin;
    int times;
  };
  std::map<std::uint64_t, One> by_file;
};
Opened& opened() {
  static auto& all = *new Opened;
  return all;
}

}  // namespace

cudaError_t open_memory(void** memory, const BlockName& name, cudaMemPool_t pool, const char* what,
                        const void* code) {
  BlockHeader header;
  const int block = open_block(name, header);
  if (block < 0) return cudaErrorInvalidResourceHandle;
  const std::uint64_t wanted = pool != nullptr ? number_of_pool(pool) : 0;
  const bool good = header.bytes != 0 && header.pool == wanted && is_device(header.device);
  void* there = good ? map_block(block, header.bytes, PROT_READ | PROT_WRITE) : nullptr;
  if (there == nullptr) {
    close(block);
    return good ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
  }
  note_other_processes();
  // All bytes count as initialized, since writes by the other process are not observed.
  add_region({.begin = static_cast<char*>(there),
              .bytes = header.requested,
              .type = cudaMemoryTypeDevice,
              .origin = Origin::opened,
              .device = header.device,
              .pool = pool,
              .block = block},
             what, true, pool != nullptr ? access_to_pool(pool) : Access{}, code);
  *memory = there;
  return cudaSuccess;
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  const Allocation found = find(memory);
  if (handle == nullptr || memory == nullptr || found.begin != memory || found.pool != nullptr) {
    return remember(cudaErrorInvalidValue);
  }
  const int block = share(memory);
  if (block < 0) return remember(cudaErrorInvalidValue);
  put_name(*handle, name_of_block(block));
  return remember(cudaSuccess);
}

cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned int flags) {
  if (memory == nullptr || (flags & ~cudaIpcMemLazyEnablePeerAccess) != 0) {
    return remember(cudaErrorInvalidValue);
  }
  const BlockName name = name_in(handle);
  if (name.process == getpid()) return remember(cudaErrorDeviceUninitialized);
  const std::lock_guard lock(opened().mutex);
  const auto known = opened().by_file.find(name.file);
  // cudaDeviceReset may have removed the mapping.
  if (known != opened().by_file.end() && find(known->second.begin).origin == Origin::opened) {
    ++known->second.times;
    *memory = known->second.begin;
    return remember(cudaSuccess);
  }
  const cudaError_t error =
      open_memory(memory, name, nullptr, "cudaIpcOpenMemHandle", __builtin_return_address(0));
  if (error == cudaSuccess) opened().by_file[name.file] = {static_cast<char*>(*memory), 1};
  return remember(error);
}

cudaError_t cudaIpcCloseMemHandle(void* memory) {
  await_device(current_device());
  const std::lock_guard lock(opened().mutex);
  for (auto at = opened().by_file.begin(); at != opened().by_file.end(); ++at) {
    if (at->second.begin != memory) continue;
    if (--at->second.times > 0) return remember(cudaSuccess);
    opened().by_file.erase(at);
    const Allocation found = find(memory);
    if (found.begin != memory) return remember(cudaErrorInvalidValue);
    remove_region(found.begin);
    close_opened(found);
    return remember(cudaSuccess);
  }
  return remember(cudaErrorInvalidValue);
}
