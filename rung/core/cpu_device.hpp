// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: its properties, memory and default thread count. Internal to core; programs
// use Context.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"

namespace rung::detail {

const DeviceApi& cpu_device_api() noexcept;

/// Returns the number of cores that the calling thread may run on.
int usable_cores();

/// Returns OMP_NUM_THREADS if it is set to a number, else the number of cores this process may use.
int default_threads();

/// Returns the number of bytes that can be allocated and used now before the system would kill a
/// process for lack of memory; 2^63 - 1 if the system does not report it.
RUNG_API std::int64_t available_memory();

/// Allocates page-aligned memory for a workspace; blocks of 2 MiB and more are aligned to 2 MiB and
/// advised to use huge pages. Throws Error(out_of_memory). Release it with release_workspace().
void* allocate_workspace(std::size_t bytes);
void release_workspace(void* memory) noexcept;

}  // namespace rung::detail
