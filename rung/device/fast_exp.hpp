// SPDX-License-Identifier: Apache-2.0
// fast_exp(): the exponential of row kernels.
#pragma once

#include "rung/device/ptx/thread.hpp"

namespace rung::inline RUNG_TARGET {

/// Returns exp(z). In f32, ex2.approx has a relative error of 2^-22 and its argument is rounded to
/// half an ulp: the relative error of the result is at most about (4 + |z|) unit roundoffs.
__device__ __forceinline__ float fast_exp(float z) {
  return ptx::fast_exp2(z * 1.44269504088896340736F);
}
__device__ __forceinline__ double fast_exp(double z) { return exp(z); }

}  // namespace rung::inline RUNG_TARGET
