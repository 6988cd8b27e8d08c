// SPDX-License-Identifier: Apache-2.0
// A mask in constant memory. All lanes of a warp read the same weight at the same time, which the
// constant cache broadcasts.
//
// Each rung that includes this file has its own array, one per process: concurrent launches on two
// streams would overwrite each other's mask. Rungs that the library chooses keep their masks in
// shared memory. All functions are static: an inline function would be merged across rungs and fill
// the array of only one.
#pragma once

#include "rung/ops/stencil/cuda/detail/image.hpp"

#if defined(__CUDACC__)
#include "rung/device/cuda_check.hpp"
#else
#include <algorithm>

#include "rung/simt/record.hpp"
#endif

namespace rung::stencil_cuda::inline RUNG_TARGET {

inline constexpr int constant_taps = Stencil::max_taps * Stencil::max_taps;

#if defined(__CUDACC__)

static __constant__ float constant_mask[constant_taps];

static void load_constant_mask(const Stencil::Args& args, Context& context) {
  const CurrentDevice current(context.device().index);
  const auto bytes = static_cast<std::size_t>(args.taps()) * sizeof(float);
  check_cuda(
      cudaMemcpyToSymbolAsync(constant_mask, args.mask.data, bytes, 0, cudaMemcpyDeviceToDevice,
                              static_cast<cudaStream_t>(context.stream())),
      "copying the mask to constant memory");
}

#else

static float constant_mask[constant_taps];

/// Copies the mask to constant memory. Registers the array with the simulated GPU on the first
/// call: kernels may only read it, and their reads are counted separately.
static void load_constant_mask(const Stencil::Args& args, Context&) {
  static const bool registered = [] {
    simt::record::register_memory({.begin = constant_mask,
                                   .bytes = sizeof(constant_mask),
                                   .space = simt::record::Space::constant,
                                   .name = "the constant variable constant_mask"});
    return true;
  }();
  static_cast<void>(registered);
  std::copy_n(static_cast<const float*>(args.mask.data), args.taps(), constant_mask);
}

#endif

}  // namespace rung::stencil_cuda::inline RUNG_TARGET
