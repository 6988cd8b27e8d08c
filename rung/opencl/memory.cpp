// SPDX-License-Identifier: Apache-2.0
// Table of buffers, which maps an address to a cl_mem and an offset.
#include "rung/opencl/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <shared_mutex>
#include <string>

#include "rung/core/error.hpp"
#include "rung/opencl/device.hpp"

namespace rung::opencl {
namespace {

struct Buffer {
  cl_mem memory;
  std::size_t bytes;
  int device;
};

struct BufferTable {
  std::shared_mutex guard;
  std::map<std::uintptr_t, Buffer> by_address;  // key: start of the address range
};

/// Returns the table, which is never destroyed: static tensors may be destroyed later.
BufferTable& table() {
  static BufferTable& all = *new BufferTable;
  return all;
}

/// Returns an iterator to the buffer that contains `address`, or end(); the caller holds the lock.
auto find_buffer(std::uintptr_t address) {
  BufferTable& all = table();
  auto found = all.by_address.upper_bound(address);
  if (found == all.by_address.begin()) return all.by_address.end();
  --found;
  return address - found->first < found->second.bytes ? found : all.by_address.end();
}

BufferPlace find_place(int device, const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::shared_lock lock(table().guard);
  const auto found = find_buffer(address);
  if (found == table().by_address.end() || found->second.device != device) return {};
  return {found->second.memory, address - found->first};
}

}  // namespace

void* allocate(int index, std::size_t bytes) {
  const OpenDevice& device = open_device(index);
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  const std::string doing = std::to_string(bytes) + " bytes on " + device.name;
  if (size > device.limits.largest_buffer) {
    throw Error(ErrorCode::out_of_memory, "OpenCL: a buffer of " + doing + "; accepted: up to " +
                                              std::to_string(device.limits.largest_buffer));
  }
  void* const range =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    throw Error(ErrorCode::out_of_memory, "OpenCL: no addresses for " + doing);
  }
  cl_int status = CL_SUCCESS;
  cl_mem memory =
      runtime().create_buffer(device.context, CL_MEM_READ_WRITE, size, nullptr, &status);
  if (status != CL_SUCCESS) munmap(range, size);
  check(status, "a buffer of " + doing);
  const std::unique_lock lock(table().guard);
  table().by_address[reinterpret_cast<std::uintptr_t>(range)] = {memory, size, index};
  return range;
}

void release(int, void* memory) noexcept {
  Buffer buffer{};
  {
    const std::unique_lock lock(table().guard);
    const auto found = table().by_address.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == table().by_address.end()) return;
    buffer = found->second;
    table().by_address.erase(found);
  }
  munmap(memory, buffer.bytes);
  // Enqueued kernels retain the buffer until they have finished.
  runtime().release_mem_object(buffer.memory);
}

void copy(int index, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const OpenDevice& device = open_device(index);
  const Runtime& cl = runtime();
  const BufferPlace source = find_place(index, from);
  const BufferPlace target = find_place(index, to);
  const std::string doing = "copying " + std::to_string(bytes) + " bytes";
  if (source.buffer != nullptr && target.buffer != nullptr) {
    check(cl.enqueue_copy_buffer(device.queue, source.buffer, target.buffer, source.offset,
                                 target.offset, bytes, 0, nullptr, nullptr),
          doing);
    check(cl.finish(device.queue), doing);
  } else if (source.buffer != nullptr) {
    check(cl.enqueue_read_buffer(device.queue, source.buffer, CL_TRUE, source.offset, bytes, to, 0,
                                 nullptr, nullptr),
          doing);
  } else if (target.buffer != nullptr) {
    check(cl.enqueue_write_buffer(device.queue, target.buffer, CL_TRUE, target.offset, bytes, from,
                                  0, nullptr, nullptr),
          doing);
  } else {
    std::copy_n(static_cast<const std::byte*>(from), bytes, static_cast<std::byte*>(to));
  }
}

BufferPlace place_of(int device, const void* address) {
  if (address == nullptr) return {};
  const BufferPlace place = find_place(device, address);
  if (place.buffer != nullptr) return place;
  char text[24];
  std::snprintf(text, sizeof text, "%p", address);
  throw Error(ErrorCode::invalid_argument,
              std::string(text) + " is not in a buffer of opencl:" + std::to_string(device) +
                  "; accepted: memory of a Tensor(dtype, shape, {Backend::opencl, " +
                  std::to_string(device) + "})");
}

}  // namespace rung::opencl
