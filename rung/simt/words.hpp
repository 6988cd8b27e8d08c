// SPDX-License-Identifier: Apache-2.0
// CUDA's qualifiers and built-in variables for the simulated GPU. The qualifiers are macros, so
// that g++ ignores words that only nvcc knows.
//
// The built-in variables are declared const, so that g++'s instrumentation skips their reads; the
// scheduler writes them under another name (see scheduler.hpp). A compiler may cache their values
// across a barrier, since the values of a thread never change and a block's threads never move to
// another OS thread.
#pragma once

#include "rung/core/export.hpp"
#include "rung/simt/types.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

namespace rung::simt::dialect {

// Initial-exec: a read of threadIdx is one add to the thread pointer instead of a call.
extern RUNG_API constinit thread_local const uint3 threadIdx __asm__("rung_simt_thread_index")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local const uint3 blockIdx __asm__("rung_simt_block_index")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local const dim3 blockDim __asm__("rung_simt_block_extent")
    __attribute__((tls_model("initial-exec")));
extern RUNG_API constinit thread_local const dim3 gridDim __asm__("rung_simt_grid_extent")
    __attribute__((tls_model("initial-exec")));

inline constexpr int warpSize = 32;

}  // namespace rung::simt::dialect
