// SPDX-License-Identifier: Apache-2.0
// Memory handles: queries, and export to other processes as file descriptors.
#include <fcntl.h>

#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/tasks.hpp"
#include "rung/emulate/runtime/virtual_memory.hpp"

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

namespace {

/// Returns the mapping that contains the address; null if there is none.
const Mapping* mapping_of(char* address) {
  auto after = space().mapped.upper_bound(address);
  if (after == space().mapped.begin()) return nullptr;
  const auto& [begin, one] = *--after;
  return address < begin + one.bytes ? &one : nullptr;
}

}  // namespace

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
      !is_device(location->id)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard lock(space().mutex);
  const Mapping* one = mapping_of(reinterpret_cast<char*>(address));
  if (one == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto may = [&](std::uint64_t devices) { return (devices >> location->id & 1) != 0; };
  *flags = may(one->access.writers)   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : may(one->access.readers) ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(space().mutex);
  const Mapping* one = mapping_of(static_cast<char*>(address));
  if (one == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = space().name(one->memory);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(space().mutex);
  const std::shared_ptr<Physical> memory = space().find(handle);
  if (properties == nullptr || memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = memory->properties;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  const std::lock_guard lock(space().mutex);
  const std::shared_ptr<Physical> memory = space().find(handle);
  if (shareable == nullptr || memory == nullptr || flags != 0 ||
      type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      (memory->properties.requestedHandleTypes & type) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int copy = fcntl(memory->block, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  memory->tell();
  note_other_processes();
  *static_cast<int*>(shareable) = copy;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  BlockHeader header;
  const int descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
  const bool good = handle != nullptr && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
                    read_block(descriptor, header) && header.bytes != 0 &&
                    header.bytes % granularity == 0 && is_device(header.device);
  if (!good) return CUDA_ERROR_INVALID_VALUE;
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  auto memory = std::make_shared<Physical>();
  memory->block = own;
  memory->bytes = header.bytes;
  memory->imported = true;
  memory->known_elsewhere = true;
  memory->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory->properties.requestedHandleTypes = type;
  memory->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, header.device};
  memory->properties.allocFlags.compressionType = static_cast<unsigned char>(header.compression);
  note_other_processes();
  const std::lock_guard lock(space().mutex);
  *handle = space().name(std::move(memory));
  return CUDA_SUCCESS;
}
