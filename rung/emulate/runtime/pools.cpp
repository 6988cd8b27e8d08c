// SPDX-License-Identifier: Apache-2.0
// Stream-ordered allocation: memory pools, including exported pools.
#include "rung/emulate/runtime/pools.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <set>

#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/stream.hpp"

struct CUmemPoolHandle_st {
  std::map<cudaMemPoolAttr, unsigned long long> values;
  int device = 0;
  bool imported = false;
  std::uint64_t number = 0;
  int block = -1;                            // block that backs an exported pool; -1: not exported
  std::map<int, cudaMemAccessFlags> access;  // access rights of other devices
};

namespace rung::cuda {
namespace {

struct Pools {
  std::mutex mutex;
  std::set<cudaMemPool_t> live;
  cudaMemPool_t first[max_devices] = {};   // default pools of the devices
  cudaMemPool_t chosen[max_devices] = {};  // set by cudaDeviceSetMemPool
};
Pools& pools() {
  static auto& all = *new Pools;
  return all;
}

/// Creates a pool. The object is never deleted, since allocations may outlive cudaMemPoolDestroy().
cudaMemPool_t new_pool(int device) {
  auto* made = new CUmemPoolHandle_st;
  made->device = device;
  pools().live.insert(made);
  return made;
}
cudaMemPool_t default_pool(int device) {
  const std::lock_guard lock(pools().mutex);
  cudaMemPool_t& one = pools().first[device];
  if (one == nullptr) one = new_pool(device);
  return one;
}
cudaMemPool_t chosen_pool(int device) {
  {
    const std::lock_guard lock(pools().mutex);
    if (pools().live.count(pools().chosen[device]) != 0) return pools().chosen[device];
  }
  return default_pool(device);
}
bool is_pool(cudaMemPool_t pool) {
  const std::lock_guard lock(pools().mutex);
  return pools().live.count(pool) != 0;
}

cudaError_t allocate_ordered(void** memory, std::size_t bytes, cudaMemPool_t pool,
                             cudaStream_t stream, const void* code) {
  const CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (pool == nullptr) pool = chosen_pool(there->device);
  if (!is_pool(pool) || pool->imported) return remember(cudaErrorInvalidValue);
  const cudaError_t error = allocate_in_pool(memory, bytes, "cudaMallocAsync", pool, code);
  if (error == cudaSuccess && there->capture == nullptr) note_allocation(*memory, bytes, stream);
  return remember(error);
}

}  // namespace

bool pool_may_export(cudaMemPool_t pool) { return pool->block >= 0; }
int device_of_pool(cudaMemPool_t pool) { return pool->device; }
std::uint64_t number_of_pool(cudaMemPool_t pool) { return pool->number; }
Access access_to_pool(cudaMemPool_t pool) {
  const std::uint64_t own = std::uint64_t{1} << pool->device;
  Access access{own, own};
  for (const auto& [device, flags] : pool->access) {
    const std::uint64_t one = std::uint64_t{1} << device;
    if (flags != cudaMemAccessFlagsProtNone) access.readers |= one;
    if (flags == cudaMemAccessFlagsProtReadWrite) access.writers |= one;
  }
  return access;
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  return allocate_ordered(memory, bytes, nullptr, stream, __builtin_return_address(0));
}
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  if (pool == nullptr) return remember(cudaErrorInvalidValue);
  return allocate_ordered(memory, bytes, pool, stream, __builtin_return_address(0));
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  // Memory that a captured graph may use remains allocated until the program's end.
  const CUstream_st* there = stream_of(stream);
  if (there == nullptr) return remember(cudaErrorInvalidResourceHandle);
  if (there->capture != nullptr) return remember(cudaSuccess);
  return submit(stream, cudaGraphNodeTypeMemFree, [memory, code = __builtin_return_address(0)] {
    work_writes(memory, find(memory).bytes);
    commit_work();
    return free_on_device(memory, code);
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (!is_device(device)) return remember(cudaErrorInvalidDevice);
  *pool = default_pool(device);
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  if (!is_device(device)) return remember(cudaErrorInvalidDevice);
  *pool = chosen_pool(device);
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  if (!is_device(device)) return remember(cudaErrorInvalidDevice);
  if (!is_pool(pool) || pool->device != device || pool->imported) {
    return remember(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(pools().mutex);
  pools().chosen[device] = pool;
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* given) {
  if (pool == nullptr || given == nullptr) return remember(cudaErrorInvalidValue);
  const bool exported = given->handleTypes == cudaMemHandleTypePosixFileDescriptor;
  if (!exported && given->handleTypes != cudaMemHandleTypeNone) {
    return remember(cudaErrorNotSupported);
  }
  if (!is_device(given->location.id)) return remember(cudaErrorInvalidDevice);
  std::uint64_t number = 0;
  int block = -1;
  if (exported) {
    static std::uint64_t count = 0;
    const std::lock_guard lock(pools().mutex);
    number = static_cast<std::uint64_t>(getpid()) << 32 | ++count;
    block = make_block({.pool = number, .device = given->location.id});
    if (block < 0) return remember(cudaErrorMemoryAllocation);
  }
  const std::lock_guard lock(pools().mutex);
  *pool = new_pool(given->location.id);
  (*pool)->number = number;
  (*pool)->block = block;
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  const std::lock_guard lock(pools().mutex);
  if (pools().live.count(pool) == 0 || pool == pools().first[pool->device]) {
    return remember(cudaErrorInvalidValue);
  }
  pools().live.erase(pool);
  if (pool->block >= 0) close(pool->block);
  pool->block = -1;
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (!is_pool(pool) || value == nullptr) return remember(cudaErrorInvalidValue);
  const bool word = attribute >= cudaMemPoolAttrReleaseThreshold;
  pool->values[attribute] = word ? *static_cast<unsigned long long*>(value)
                                 : static_cast<unsigned long long>(*static_cast<int*>(value));
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (!is_pool(pool) || value == nullptr) return remember(cudaErrorInvalidValue);
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

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list,
                                 std::size_t count) {
  if (!is_pool(pool) || (list == nullptr && count != 0)) return remember(cudaErrorInvalidValue);
  for (std::size_t i = 0; i < count; ++i) {
    const cudaMemLocation& where = list[i].location;
    if (where.type != cudaMemLocationTypeDevice || !is_device(where.id)) {
      return remember(cudaErrorInvalidDevice);
    }
    // A pool's own device always has full access.
    if (where.id == pool->device && list[i].flags != cudaMemAccessFlagsProtReadWrite) {
      return remember(cudaErrorInvalidDevice);
    }
  }
  for (std::size_t i = 0; i < count; ++i) pool->access[list[i].location.id] = list[i].flags;
  renew_access(pool->device);
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  if (!is_pool(pool) || flags == nullptr || location == nullptr) {
    return remember(cudaErrorInvalidValue);
  }
  if (!is_device(location->id)) return remember(cudaErrorInvalidDevice);
  const auto given = pool->access.find(location->id);
  *flags = location->id == pool->device  ? cudaMemAccessFlagsProtReadWrite
           : given != pool->access.end() ? given->second
                                         : cudaMemAccessFlagsProtNone;
  return remember(cudaSuccess);
}

cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool,
                                               cudaMemAllocationHandleType type, unsigned flags) {
  const bool good = handle != nullptr && is_pool(pool) && pool->block >= 0 && !pool->imported &&
                    type == cudaMemHandleTypePosixFileDescriptor && flags == 0;
  if (!good) return remember(cudaErrorInvalidValue);
  const int copy = fcntl(pool->block, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return remember(cudaErrorOperatingSystem);
  *static_cast<int*>(handle) = copy;
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle,
                                                 cudaMemAllocationHandleType type, unsigned flags) {
  BlockHeader header;
  const int descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
  const bool good = pool != nullptr && type == cudaMemHandleTypePosixFileDescriptor && flags == 0 &&
                    read_block(descriptor, header) && header.pool != 0 && header.bytes == 0 &&
                    is_device(header.device);
  if (!good) return remember(cudaErrorInvalidValue);
  const std::lock_guard lock(pools().mutex);
  *pool = new_pool(header.device);
  (*pool)->imported = true;
  (*pool)->number = header.pool;
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* memory) {
  if (data == nullptr) return remember(cudaErrorInvalidValue);
  const Allocation found = find(memory);
  if (found.begin != memory || memory == nullptr || found.pool == nullptr) {
    return remember(cudaErrorInvalidValue);
  }
  const int block = share(memory);
  if (block < 0) return remember(cudaErrorInvalidValue);
  put_name(*data, name_of_block(block));
  return remember(cudaSuccess);
}
cudaError_t cudaMemPoolImportPointer(void** memory, cudaMemPool_t pool,
                                     cudaMemPoolPtrExportData* data) {
  if (memory == nullptr || data == nullptr || !is_pool(pool) || !pool->imported) {
    return remember(cudaErrorInvalidValue);
  }
  const BlockName name = name_in(*data);
  return remember(
      open_memory(memory, name, pool, "cudaMemPoolImportPointer", __builtin_return_address(0)));
}
