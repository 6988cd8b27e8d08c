// SPDX-License-Identifier: Apache-2.0
// Dependent launches: a kernel whose blocks are set up while the grid in front still runs, which
// hides most of the gap between two launches of a stream.
//
//   __global__ void kernel(...) {
//     start_dependent();                        // first of all, by every thread
//     ...
//   }
//   launch(context, {.grid = blocks, .block = 256, .dependent = can_depend(context)}, kernel, ...);
//
// Nothing else changes: behind start_dependent() the grid in front has ended and its writes are
// there. It is for kernels that every thread of enters with it.
#pragma once

#include "rung/core/context.hpp"
#include "rung/device/ptx/hopper.hpp"

namespace rung::inline RUNG_TARGET {

/// Lets the next grid be set up in turn, then waits for the one in front.
__device__ __forceinline__ void start_dependent() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  ptx::let_next_grid_start();
  ptx::wait_for_earlier_grid();
#endif
}

/// Returns true if kernels of the calling file wait for the launch before: on compute capability
/// 9.0, if they were compiled for it. Code for other chips, or translated from theirs, does not.
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
