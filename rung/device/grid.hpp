// SPDX-License-Identifier: Apache-2.0
// grid_sync(): a barrier of all blocks, in a kernel launched with .cooperative = true.
#pragma once

#include "rung/device/device.hpp"

#if defined(__CUDACC__)
#include <cooperative_groups.h>
#endif

namespace rung::inline RUNG_TARGET {

#if defined(__CUDACC__)
__device__ __forceinline__ void grid_sync() { cooperative_groups::this_grid().sync(); }
#else
inline void grid_sync(simt::Place place = simt::Place::current()) { simt::grid_barrier(place); }
#endif

}  // namespace rung::inline RUNG_TARGET
