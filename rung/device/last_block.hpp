// SPDX-License-Identifier: Apache-2.0
// Detection of the last of several blocks that contribute to one result: the last block combines
// the partials of all blocks, which saves a second launch.
#pragma once

#include "rung/device/ptx/memory.hpp"

namespace rung::inline RUNG_TARGET {

/// Returns true in all threads of the block that is the last of `blocks` blocks to call it; the
/// writes of the other blocks are then visible. All threads of a block call it after a barrier, so
/// that the ticket's release covers the writes of the whole block. The ticket is zero before and
/// after the launch.
__device__ __forceinline__ bool is_last_block(unsigned* ticket, int blocks, int& scratch) {
  if (threadIdx.x == 0) {
    const unsigned before = ptx::atomic_add_acquire_release(ticket, 1U);
    const bool last = before + 1 == static_cast<unsigned>(blocks);
    if (last) *ticket = 0;  // all other blocks of this launch have taken theirs
    scratch = last ? 1 : 0;
  }
  __syncthreads();
  return scratch != 0;
}

}  // namespace rung::inline RUNG_TARGET
