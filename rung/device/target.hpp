// SPDX-License-Identifier: Apache-2.0
// Name of the compiler that reads a kernel's source. Everything in device/ is in an inline
// namespace named after it: the same function compiled for the chip and for the simulator is then
// two symbols, and the linker cannot replace one by the other.
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

/// The backend that this compilation of a kernel serves: what its rung registers under.
#if defined(__CUDACC__)
inline constexpr Backend device_backend = Backend::cuda;
#else
inline constexpr Backend device_backend = Backend::simt;
#endif

}  // namespace rung::inline RUNG_TARGET
