// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: address ranges, physical memory, and mappings between them. Mapped
// memory is inaccessible until access rights are set.
#include "rung/emulate/runtime/virtual_memory.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/tasks.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {
namespace {

bool is_whole(std::size_t bytes) { return bytes != 0 && bytes % granularity == 0; }
char* at(CUdeviceptr address) { return reinterpret_cast<char*>(address); }

/// Replaces the contents of an address range by an inaccessible reservation.
bool close_off(char* begin, std::size_t bytes) {
  return mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
              0) != MAP_FAILED;
}

bool is_good(const CUmemAllocationProp* given) {
  return given != nullptr && given->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         given->location.type == CU_MEM_LOCATION_TYPE_DEVICE && is_device(given->location.id);
}

/// Calls f for each mapping in the range. Returns false if the range does not consist of whole
/// mappings.
template <class F>
bool for_mappings(char* begin, std::size_t bytes, F f) {
  char* next = begin;
  for (auto one = space().mapped.find(begin); one != space().mapped.end() && one->first == next;
       ++one) {
    next += one->second.bytes;
    if (next >= begin + bytes) break;
  }
  if (bytes == 0 || next != begin + bytes) return false;
  for (auto one = space().mapped.find(begin); one != space().mapped.end() && one->first < next;) {
    const auto here = one++;
    f(here->first, here->second);
  }
  return true;
}

/// Makes the pages accessible to the host and to copies, as far as the access rights permit.
bool show(char* begin, const Mapping& one) {
  if (one.access.readers == 0) return close_off(begin, one.bytes);
  const int how = one.access.writers != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
  return map_block(one.memory->block, one.bytes, how, begin) != nullptr;
}

}  // namespace

Space& space() {
  static auto& all = *new Space;
  return all;
}

void Physical::tell() {
  if (known_elsewhere) return;
  known_elsewhere = true;
  for (const auto& [begin, one] : space().mapped) {
    if (one.memory.get() == this) simt::record::mark_initialized(begin, one.bytes);
  }
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* given,
                                       CUmemAllocationGranularity_flags) {
  if (bytes == nullptr || !is_good(given)) return CUDA_ERROR_INVALID_VALUE;
  *bytes = granularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags) {
  const bool power = (alignment & (alignment - 1)) == 0;
  if (address == nullptr || !is_whole(bytes) || !power || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  alignment = std::max(alignment, granularity);
  constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const std::lock_guard lock(space().mutex);
  // Uses the requested address if it is free, else any address.
  if (wanted != 0 && wanted % alignment == 0) {
    void* there = mmap(at(wanted), bytes, PROT_NONE, how | MAP_FIXED_NOREPLACE, -1, 0);
    if (there == at(wanted)) {
      space().reserved[at(wanted)] = bytes;
      *address = wanted;
      return CUDA_SUCCESS;
    }
    if (there != MAP_FAILED) munmap(there, bytes);
  }
  void* there = mmap(nullptr, bytes + alignment, PROT_NONE, how, -1, 0);
  if (there == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto first = reinterpret_cast<std::uintptr_t>(there);
  const std::uintptr_t begin = (first + alignment - 1) / alignment * alignment;
  if (begin != first) munmap(there, begin - first);
  if (const std::size_t rest = first + alignment - begin; rest != 0) {
    munmap(at(begin + bytes), rest);
  }
  space().reserved[at(begin)] = bytes;
  *address = begin;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  const std::lock_guard lock(space().mutex);
  const auto range = space().reserved.find(at(address));
  if (range == space().reserved.end() || range->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  const auto first = space().mapped.lower_bound(at(address));
  if (first != space().mapped.end() && first->first < at(address) + bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  munmap(at(address), bytes);
  space().reserved.erase(range);
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* given, unsigned long long flags) {
  if (handle == nullptr || !is_whole(bytes) || !is_good(given) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((given->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const int device = given->location.id;
  if (!take_room(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const int block = make_block(
      {.bytes = bytes, .device = device, .compression = given->allocFlags.compressionType});
  if (block < 0) {
    return_room(device, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto memory = std::make_shared<Physical>();
  memory->block = block;
  memory->bytes = bytes;
  memory->properties = *given;
  const std::lock_guard lock(space().mutex);
  *handle = space().name(std::move(memory));
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(space().mutex);
  return space().handles.erase(handle) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const std::lock_guard lock(space().mutex);
  const std::shared_ptr<Physical> memory = space().find(handle);
  const bool good = memory != nullptr && is_whole(bytes) && address % granularity == 0 &&
                    offset == 0 && flags == 0 && bytes <= memory->bytes;
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  char* const begin = at(address);
  auto range = space().reserved.upper_bound(begin);
  if (range == space().reserved.begin()) return CUDA_ERROR_INVALID_VALUE;
  --range;
  if (begin + bytes > range->first + range->second) return CUDA_ERROR_INVALID_VALUE;
  auto after = space().mapped.lower_bound(begin);
  if (after != space().mapped.end() && after->first < begin + bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (after != space().mapped.begin()) {
    const auto& [first, before] = *std::prev(after);
    if (first + before.bytes > begin) return CUDA_ERROR_INVALID_VALUE;
  }
  if (memory->mapped_before) memory->tell();
  memory->mapped_before = true;
  const void* code = __builtin_return_address(0);
  space().mapped[begin] = {bytes, memory};
  add_region({.begin = begin,
              .bytes = bytes,
              .type = cudaMemoryTypeDevice,
              .origin = Origin::mapped,
              .device = memory->properties.location.id},
             "cuMemMap", memory->known_elsewhere, {0, 0}, code);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  await_device(current_device());
  const std::lock_guard lock(space().mutex);
  const bool whole = for_mappings(at(address), bytes, [](char* begin, const Mapping& one) {
    remove_region(begin);
    close_off(begin, one.bytes);
    space().mapped.erase(begin);
  });
  return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* list,
                        size_t count) {
  if (list == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const CUmemLocation& where = list[i].location;
    if (where.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!is_device(where.id)) return CUDA_ERROR_INVALID_DEVICE;
  }
  bool shown = true;
  const std::lock_guard lock(space().mutex);
  const bool whole = for_mappings(at(address), bytes, [&](char* begin, Mapping& one) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t device = std::uint64_t{1} << list[i].location.id;
      const auto set = [&](std::uint64_t& devices, bool may) {
        devices = may ? devices | device : devices & ~device;
      };
      set(one.access.readers, list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
      set(one.access.writers, list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    shown &= show(begin, one);
    rung::simt::record::allow_devices(begin, one.access.readers, one.access.writers);
  });
  if (!whole) return CUDA_ERROR_INVALID_VALUE;
  return shown ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
