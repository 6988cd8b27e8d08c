// SPDX-License-Identifier: Apache-2.0
// OpenCL buffers under addresses, so that tensors on a device are pointers as everywhere in rung.
//
// A buffer (cl_mem) has no address on the host. Each gets a range of addresses that the system
// reserves and maps to nothing: pointer arithmetic, overlap checks and views work, a host that
// reads through such a pointer ends with a segmentation fault instead of wrong numbers, and no two
// allocations of the process share an address. See docs/adr/0018-opencl-buffers-have-addresses.md.
#pragma once

#include <cstddef>

namespace rung::opencl {

// The functions of a DeviceApi.
void* allocate(int device, std::size_t bytes);
void release(int device, void* memory) noexcept;
void copy(int device, void* to, const void* from, std::size_t bytes);

}  // namespace rung::opencl
