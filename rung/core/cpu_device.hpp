// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: its description, its memory, and how many threads this process should use.
// Internal to core; programs go through Context.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/context.hpp"
#include "rung/core/export.hpp"

namespace rung::detail {

const DeviceApi& cpu_device_api() noexcept;

/// The cores that the calling thread may run on.
int usable_cores();

/// OMP_NUM_THREADS where it is set to a number, else the cores this process may run on.
int default_threads();

/// Bytes that the system could hand out now without ending a process; 2^63 - 1 where it does not
/// say.
RUNG_API std::int64_t available_memory();

/// Page-aligned memory that may serve as a workspace: aligned to 2 MiB and advised to huge pages
/// when it is that large. Throws Error(out_of_memory). Freed by release_workspace().
void* allocate_workspace(std::size_t bytes);
void release_workspace(void* memory) noexcept;

}  // namespace rung::detail
