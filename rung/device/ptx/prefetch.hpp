// SPDX-License-Identifier: Apache-2.0
// prefetch: asks for a line of global memory that will be read soon.
#pragma once

#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET::ptx {

/// Has the line of 128 bytes with this element brought to L2. Does not wait, and may do nothing;
/// the address is one that may be read.
__device__ __forceinline__ void prefetch_l2(const void* address) {
#if defined(__CUDACC__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(address)));
#else
  (void)address;
#endif
}

}  // namespace rung::inline RUNG_TARGET::ptx
