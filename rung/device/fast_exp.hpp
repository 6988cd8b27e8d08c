// SPDX-License-Identifier: Apache-2.0
// fast_exp(): the exponential of row kernels.
#pragma once

#include "rung/device/ptx/thread.hpp"

namespace rung::inline RUNG_TARGET {

/// Returns exp(z). f32: ex2.approx is off by 2^-22 of its result, its argument by half an ulp, so
/// that the relative error is at most (4 + |z|) units of roundoff, or so.
__device__ __forceinline__ float fast_exp(float z) {
  return ptx::fast_exp2(z * 1.44269504088896340736F);
}
__device__ __forceinline__ double fast_exp(double z) { return exp(z); }

}  // namespace rung::inline RUNG_TARGET
