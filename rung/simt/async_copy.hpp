// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of the simulated GPU (cp.async). A copy is performed when its thread waits
// for its group: a kernel that omits the wait, or waits for the wrong group, reads poison or the
// previous tile. The copy also reads its source at that time. Under the reverse order all copies
// are performed at issue, and under random orders half of them are, which exposes kernels that
// overwrite a tile while other threads still read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

/// Issues a copy of `valid` bytes, padded with zeros to `bytes` (4, 8 or 16).
RUNG_API void async_copy(void* to, const void* from, int bytes, int valid, Place place);
/// Issues a copy of any size and alignment, as library functions do.
RUNG_API void async_copy_bytes(void* to, const void* from, std::size_t bytes, Place place);
/// Issues a copy of any size and alignment into the block's shared memory. Its bytes count toward
/// the barrier's current phase without an expect_tx.
RUNG_API void async_load(void* to, const void* from, std::size_t bytes, std::uint64_t* barrier,
                         Place place);
/// Makes the barrier track all copies that the calling thread has issued so far
/// (cp.async.mbarrier.arrive). `counted`: the thread's arrival counts toward the phase.
RUNG_API void async_arrive(std::uint64_t* barrier, bool counted, Place place);
/// Records that the calling thread reads the source of a copy, of any size.
RUNG_API void async_read(const void* from, std::size_t bytes, Place place);
/// Returns true if the whole range is in the calling block's shared memory.
RUNG_API bool in_own_shared_memory(const void* address, std::size_t bytes);
/// Commits the calling thread's current group.
RUNG_API void async_commit();
/// Completes all groups of the calling thread except the latest `pending` committed ones.
RUNG_API void async_wait_group(int pending);
/// Completes every copy of the calling thread, committed or not.
RUNG_API void async_wait_all();

}  // namespace rung::simt
