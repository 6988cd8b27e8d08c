// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of the simulated GPU (cp.async). A copy happens when its thread waits for
// its group: a kernel that forgets to wait, or waits for the wrong group, reads what was there -
// poison, or the tile before. The source is read as late, for the same reason. Under the reverse
// order copies happen when they are issued, and under random orders half of them: so a tile that
// others still read is gone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

/// Will copy `valid` bytes and fill up to `bytes` (4, 8 or 16) with zeros.
RUNG_API void async_copy(void* to, const void* from, int bytes, int valid, Place place);
/// The same of any number of bytes, without alignment, as library functions copy.
RUNG_API void async_copy_bytes(void* to, const void* from, std::size_t bytes, Place place);
/// A copy into the block's shared memory whose bytes a barrier there waits for, without anybody
/// announcing them; of any size and alignment.
RUNG_API void async_load(void* to, const void* from, std::size_t bytes, std::uint64_t* barrier,
                         Place place);
/// All copies of the calling thread so far land for this barrier, which waits for them; `counted`:
/// and for the thread, which arrives.
RUNG_API void async_arrive(std::uint64_t* barrier, bool counted, Place place);
/// The calling thread's part in reading what such a copy brings.
RUNG_API void async_read(const void* from, std::size_t bytes, Place place);
/// Returns whether all of it is in the calling block's shared memory.
RUNG_API bool in_own_shared_memory(const void* address, std::size_t bytes);
/// Closes the calling thread's current group.
RUNG_API void async_commit();
/// Completes all groups of the calling thread but the latest `pending` committed ones.
RUNG_API void async_wait_group(int pending);
/// Completes every copy of the calling thread, committed or not.
RUNG_API void async_wait_all();

}  // namespace rung::simt
