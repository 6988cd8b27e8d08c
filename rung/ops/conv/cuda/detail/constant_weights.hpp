// SPDX-License-Identifier: Apache-2.0
// Filters in constant memory, for the one rung that includes this header. All functions are static:
// an inline function would be merged across translation units, and fill the array of only one.
#pragma once

#include "rung/ops/conv/shared/cuda/layer.hpp"

#if defined(__CUDACC__)
#include "rung/device/cuda_check.hpp"
#else
#include <algorithm>

#include "rung/simt/record.hpp"
#endif

namespace rung::conv_cuda::inline RUNG_TARGET {

inline constexpr std::int64_t max_constant_weights = 16384;

#if defined(__CUDACC__)

static __constant__ float constant_weights[max_constant_weights];

static void load_constant_weights(const Conv::Args& args, Context& context) {
  const CurrentDevice current(context.device().index);
  const auto bytes = static_cast<std::size_t>(args.w.size()) * sizeof(float);
  check_cuda(
      cudaMemcpyToSymbolAsync(constant_weights, args.w.data, bytes, 0, cudaMemcpyDeviceToDevice,
                              static_cast<cudaStream_t>(context.stream())),
      "copying the filters to constant memory");
}

#else

static float constant_weights[max_constant_weights];

/// Copies the weights to the array. Kernels may only read it; the simulator counts these reads as
/// constant memory.
static void load_constant_weights(const Conv::Args& args, Context&) {
  static const bool registered = [] {
    simt::record::register_memory({.begin = constant_weights,
                                   .bytes = sizeof(constant_weights),
                                   .space = simt::record::Space::constant,
                                   .name = "the constant variable constant_weights"});
    return true;
  }();
  static_cast<void>(registered);
  std::copy_n(static_cast<const float*>(args.w.data), args.w.size(), constant_weights);
}

#endif

}  // namespace rung::conv_cuda::inline RUNG_TARGET
