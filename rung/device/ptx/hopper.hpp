// SPDX-License-Identifier: Apache-2.0
// Small features of compute capability 9.0: registers that warpgroups hand each other, one thread
// elected of a warp, and grids that start before the one in front of them has ended.
#pragma once

#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

/// Leaves each thread of the calling warpgroup (4 warps, all of which call) with `Registers`, a
/// multiple of 8 from 24 to 256; for warps that only start copies. sm_90a, __launch_bounds__(n, 1).
template <int Registers>
__device__ __forceinline__ void release_registers() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
/// Waits until that many are free, which others must have released: all that warpgroups ask for
/// must fit what the block started with, or this hangs.
template <int Registers>
__device__ __forceinline__ void claim_registers() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// True in one lane of the warp, all of whose lanes call. What the compiler needs to see that the
/// branch holds one thread: cheaper around copies than threadIdx.x == 0.
__device__ __forceinline__ bool elect_one() {
  std::uint32_t elected;
  asm volatile("{\n .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.u32 %0, 1, 0, p;\n}"
               : "=r"(elected));
  return elected != 0;
}

/// Waits, in a launch with .dependent = true, until the preceding grid has completed and its writes
/// are visible. Code before this call overlaps with that grid, and must not access its results.
__device__ __forceinline__ void wait_for_earlier_grid() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
/// The next grid of the stream, if launched .dependent, may start once every block has called this
/// or exited.
__device__ __forceinline__ void let_next_grid_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

#else

// Simulated threads have all registers they want, but claims that cannot be met hang here, too.
template <int Registers>
void release_registers(simt::Place place = simt::Place::current()) {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0);
  simt::set_registers(Registers, false, place);
}
template <int Registers>
void claim_registers(simt::Place place = simt::Place::current()) {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0);
  simt::set_registers(Registers, true, place);
}
inline bool elect_one(simt::Place place = simt::Place::current()) {
  return simt::lane_index() == __builtin_ctz(simt::ballot(0xffffffffu, true, place));
}
// Grids end before the next one starts.
inline void wait_for_earlier_grid() {}
inline void let_next_grid_start() {}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
