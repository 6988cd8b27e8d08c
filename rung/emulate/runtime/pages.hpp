// SPDX-License-Identifier: Apache-2.0
// Page mappings for memory that the runtime allocates. They are separate from the host's heap,
// surrounded by inaccessible guard pages, and stay inaccessible for a while after they are freed,
// so that stray accesses fault instead of corrupting host data. Device memory is also inaccessible
// to host code.
#pragma once

#include <cstddef>

namespace rung::cuda {

struct Pages {
  char* begin = nullptr;
  std::size_t bytes = 0;
  std::size_t guard = 0;  // bytes of guard pages on each side
};

/// Maps at least `bytes` bytes, readable and writable; `begin` is null on failure. `guarded`:
/// between inaccessible pages, which takes two more mappings of the limited number per process.
Pages map_pages(std::size_t bytes, bool guarded);

/// Freed memory, for reports of later accesses.
struct FreedMemory {
  const char* begin = nullptr;  // null: none
  std::size_t bytes = 0;
  const void* code = nullptr;  // return address of the freeing call; null: unknown
};
/// Makes the pages inaccessible. Their addresses are reused only after much other memory has been
/// freed.
void retire_pages(const Pages& pages, const FreedMemory& what);
/// Returns the recently freed memory that contained this address.
FreedMemory find_freed(const void* address);

/// Makes device memory accessible during the object's lifetime, for running kernels and for the
/// runtime's own copies.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};
/// Marks the pages as device memory, which is inaccessible unless a DeviceAccess exists.
void close_to_host(const Pages& pages);
/// Marks the pages as ordinary memory again.
void open_to_host(const Pages& pages);

}  // namespace rung::cuda
