// SPDX-License-Identifier: Apache-2.0
// Detection of the last of several blocks that share a result: it combines the parts that they left
// in memory, which saves a second launch.
#pragma once

#include "rung/device/ptx/memory.hpp"

namespace rung::inline RUNG_TARGET {

/// Called by all threads of a block behind a barrier, which makes what each has written one
/// thread's past, and that is what the ticket publishes: is this the last of `blocks` to come here?
/// What the others wrote before they came is then visible. The ticket is zero before the launch,
/// and after it.
__device__ __forceinline__ bool is_last_block(unsigned* ticket, int blocks, int& scratch) {
  if (threadIdx.x == 0) {
    const unsigned before = ptx::atomic_add_acquire_release(ticket, 1U);
    const bool last = before + 1 == static_cast<unsigned>(blocks);
    if (last) *ticket = 0;  // nobody else will look at it in this launch
    scratch = last ? 1 : 0;
  }
  __syncthreads();
  return scratch != 0;
}

}  // namespace rung::inline RUNG_TARGET
