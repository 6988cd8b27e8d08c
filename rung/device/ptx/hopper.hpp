// SPDX-License-Identifier: Apache-2.0
// Small features of compute capability 9.0: register reallocation among warpgroups, election of one
// thread of a warp, and programmatic dependent launch.
#pragma once

#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

/// Releases registers down to `Registers` per thread, a multiple of 8 from 24 to 256; for producer
/// warps. All 4 warps of the warpgroup call it. Needs sm_90a and __launch_bounds__(n, 1).
template <int Registers>
__device__ __forceinline__ void release_registers() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
/// Claims registers up to `Registers` per thread; waits until other warpgroups have released them.
/// Hangs if the claims of all warpgroups exceed the registers that the block started with.
template <int Registers>
__device__ __forceinline__ void claim_registers() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Returns true in one lane of the warp; all lanes call it. The compiler then knows that one thread
/// takes the branch: cheaper around copies than threadIdx.x == 0.
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
/// Lets the next grid of the stream, if launched with .dependent = true, start once every block has
/// called this or exited.
__device__ __forceinline__ void let_next_grid_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

#else

// Simulated threads have no register limit, but claims that cannot be met hang, as on the GPU.
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
