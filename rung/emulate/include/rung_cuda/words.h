// SPDX-License-Identifier: Apache-2.0
// CUDA's qualifiers and built-in variables for ordinary programs. Some qualifiers expand to
// distinct names that mark the code behind them for `rung emulate` to rewrite
// (rung/emulate/rewrite.hpp).
#pragma once

#include "rung_cuda/vector_types.h"

#ifdef __CUDACC__
#define __global__ __rung_global__
#define __shared__ __rung_shared__
#else
#define __global__
#define __shared__
#endif
#ifdef __RUNG_EMULATE__
#define __managed__ __rung_managed__
#define __device__ __rung_device__
#define __host__ __rung_host__
#else
#define __managed__
#define __device__
#define __host__
#endif
#if defined(__CUDACC_RDC__)
#define __constant__ __rung_shared_constant__
#elif defined(__CUDACC__)
#define __constant__ __rung_constant__
#else
#define __constant__
#endif
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__
#ifdef __CUDACC__
#define __launch_bounds__(...) __rung_launch_bounds__(__VA_ARGS__)
#define __cluster_dims__(...) __rung_cluster_dims__(__VA_ARGS__)
#else
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#endif
#define __maxnreg__(...)
#define __block_size__(...)
#define __grid_constant__
#define __nv_pure__ __attribute__((pure))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __device_builtin__
#define __cudart_builtin__
#define CUDARTAPI
#define CUDART_CB
#define CUDA_CB

#define __nv_is_extended_device_lambda_closure_type(type) false
#define __nv_is_extended_host_device_lambda_closure_type(type) false

// The scheduler writes these variables under their assembler names; kernels see them as const.
extern __thread const uint3 threadIdx __asm__("rung_simt_thread_index")
    __attribute__((tls_model("initial-exec")));
extern __thread const uint3 blockIdx __asm__("rung_simt_block_index")
    __attribute__((tls_model("initial-exec")));
extern __thread const dim3 blockDim __asm__("rung_simt_block_extent")
    __attribute__((tls_model("initial-exec")));
extern __thread const dim3 gridDim __asm__("rung_simt_grid_extent")
    __attribute__((tls_model("initial-exec")));
#if __cplusplus >= 201703L
inline constexpr int warpSize = 32;
#else
static constexpr int warpSize = 32;
#endif
