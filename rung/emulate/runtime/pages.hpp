// SPDX-License-Identifier: Apache-2.0
// Pages for memory that the runtime allocates. They are apart from the host's heap, between pages
// that nobody may touch, and stay closed for a while after they are freed: a stray access faults
// instead of damaging the host. Device memory is closed to the host's code as well.
#pragma once

#include <cstddef>

namespace rung::cuda {

struct Pages {
  char* begin = nullptr;
  std::size_t bytes = 0;
  std::size_t guard = 0;  // before and behind
};

/// Maps at least this many bytes, readable and writable; `begin` is null where the system has no
/// room. `guarded`: between pages that nobody may touch. Each costs two of the system's mappings,
/// whose number is limited.
Pages map_pages(std::size_t bytes, bool guarded);

/// Memory that was freed, for reports of later accesses.
struct FreedMemory {
  const char* begin = nullptr;  // null where there is none
  std::size_t bytes = 0;
  const void* code = nullptr;  // return address of the call that freed it; null: not known
};
/// Closes the pages for everybody. Their addresses are not used again before much else was freed.
void retire_pages(const Pages& pages, const FreedMemory& what);
/// Returns the memory that was freed lately and held the address.
FreedMemory find_freed(const void* address);

/// While one exists, device memory is open: kernels run, or the runtime copies.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};
/// From now on the pages are device memory, closed unless somebody has DeviceAccess ...
void close_to_host(const Pages& pages);
/// ... and no more.
void open_to_host(const Pages& pages);

}  // namespace rung::cuda
