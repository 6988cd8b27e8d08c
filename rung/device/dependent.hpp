// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launch: a kernel's blocks are set up while the preceding grid of the
// stream still runs, which hides most of the gap between two launches.
//
//   __global__ void kernel(...) {
//     start_dependent();                        // first statement, in every thread
//     ...
//   }
//   launch(context, {.grid = blocks, .block = 256, .dependent = can_depend(context)}, kernel, ...);
//
// After start_dependent() the preceding grid has ended and its writes are visible. Every thread of
// the kernel must call it first.
//
// A kernel with a long prologue splits the call, so that the prologue overlaps with the preceding
// grid:
//
//   let_dependent_start();                    // first statement, in every thread
//   ...                                       // indices; prefetches into L2, not loads
//   wait_for_preceding();                     // every thread, before any load or store
#pragma once

#include "rung/core/context.hpp"
#include "rung/device/ptx/hopper.hpp"

namespace rung::inline RUNG_TARGET {

/// Lets the next grid of the stream be set up.
__device__ __forceinline__ void let_dependent_start() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  ptx::let_next_grid_start();
#endif
}
/// Waits for the preceding grid to end. Before it a thread may prefetch into L2, which is coherent,
/// but not load: the preceding grid may still write, and a loaded line would stay in L1.
__device__ __forceinline__ void wait_for_preceding() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  ptx::wait_for_earlier_grid();
#endif
}
/// Lets the next grid of the stream be set up, then waits for the preceding grid to end.
__device__ __forceinline__ void start_dependent() {
  let_dependent_start();
  wait_for_preceding();
}

/// Returns true if start_dependent() waits for the preceding grid in kernels of the calling file:
/// the device has compute capability 9.0 and the file was compiled for 9.0. Code compiled for an
/// older capability would not wait.
inline bool can_depend(const Context& context) {
#if defined(__CUDA_ARCH_LIST__)
  for (const int compiled_for : {__CUDA_ARCH_LIST__}) {
    if (compiled_for == 900) return context.info().compute_capability == 90;
  }
  return false;
#else
  return context.info().compute_capability == 90;
#endif
}

}  // namespace rung::inline RUNG_TARGET
