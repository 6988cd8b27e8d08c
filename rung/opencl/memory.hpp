// SPDX-License-Identifier: Apache-2.0
// Addresses for OpenCL buffers, so that tensors on a device are pointers as on other backends.
//
// A buffer (cl_mem) has no host address. Each buffer gets a reserved, inaccessible range of virtual
// addresses (PROT_NONE): pointer arithmetic, overlap checks and views work, a host access through
// such a pointer is a segmentation fault, and no two allocations of the process share an address.
// See docs/adr/0018-opencl-buffers-have-addresses.md.
#pragma once

#include <cstddef>

namespace rung::opencl {

// Functions for core's DeviceApi.
void* allocate(int device, std::size_t bytes);
void release(int device, void* memory) noexcept;
void copy(int device, void* to, const void* from, std::size_t bytes);

}  // namespace rung::opencl
