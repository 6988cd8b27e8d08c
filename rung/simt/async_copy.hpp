// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of the simulated GPU (cp.async). A copy happens when its thread waits for
// its group, not before: a kernel that forgets to wait, or waits for the wrong group, reads what
// was there - poison, or the tile before. The source is read as late, for the same reason.
#pragma once

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

/// Will copy `valid` bytes and fill up to `bytes` (4, 8 or 16) with zeros.
RUNG_API void async_copy(void* to, const void* from, int bytes, int valid, Place place);
/// Closes the calling thread's current group.
RUNG_API void async_commit();
/// Completes all groups of the calling thread but the latest `pending` committed ones.
RUNG_API void async_wait_group(int pending);
/// Completes every copy of the calling thread, committed or not.
RUNG_API void async_wait_all();

}  // namespace rung::simt
