// SPDX-License-Identifier: Apache-2.0
// prefetch: software prefetch of global memory.
#pragma once

#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET::ptx {

/// Prefetches the 128-byte line that contains `address` into L2. Does not wait, and may do nothing;
/// the address must be readable.
__device__ __forceinline__ void prefetch_l2(const void* address) {
#if defined(__CUDACC__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(address)));
#else
  (void)address;
#endif
}

}  // namespace rung::inline RUNG_TARGET::ptx
