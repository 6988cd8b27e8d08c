// SPDX-License-Identifier: Apache-2.0
// RUNG_TARGET, the inline namespace of everything in device/, named after the compiler. A function
// compiled for the GPU and for the simulator has two symbols, which the linker cannot merge.
#pragma once

#include "rung/core/tensor_ref.hpp"

#if defined(__CUDACC__)
#define RUNG_TARGET nvcc_target
#elif defined(RUNG_SIMT)
#define RUNG_TARGET simt_target
#else
#error "kernels are compiled by nvcc, or by g++ with -DRUNG_SIMT=1"
#endif

namespace rung::inline RUNG_TARGET {

/// Backend of this compilation, under which its rungs register.
#if defined(__CUDACC__)
inline constexpr Backend device_backend = Backend::cuda;
#else
inline constexpr Backend device_backend = Backend::simt;
#endif

}  // namespace rung::inline RUNG_TARGET
