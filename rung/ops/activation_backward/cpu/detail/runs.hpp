// SPDX-License-Identifier: Apache-2.0
// What activation_backward's vector rungs share: a kernel for runs of elements along one axis, and
// the walk along them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/ops/activation_backward/op/activation_backward.hpp"

namespace rung::activation_backward_cpu {

/// n elements, `steps` apart in dx, saved and dy; vectors where all steps are 1.
using Kernel = void (*)(ActivationFunction function, void* dx, const void* saved, const void* dy,
                        const std::int64_t (&steps)[3], std::int64_t n);
/// For the instruction set of this machine; in 020_simd.cpp.
Kernel find_kernel(DType dtype);

/// Elements [begin, end) in the order of args.elements, run by run.
inline void compute(const ActivationBackward::Args& args, std::int64_t begin, std::int64_t end) {
  const Kernel kernel = find_kernel(args.dx.dtype);
  const auto size = static_cast<std::int64_t>(size_of(args.dx.dtype));
  const Collapsed<3>& elements = args.elements;
  const int last = elements.rank - 1;
  const std::int64_t length = elements.rank == 0 ? 1 : elements.shape[last];
  std::int64_t steps[3] = {1, 1, 1};
  for (int tensor = 0; tensor < 3 && last >= 0; ++tensor) {
    steps[tensor] = elements.strides[tensor][last];
  }
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t n = std::min(end - i, length - i % length);
    std::int64_t at[3];
    elements.offsets(i, at);
    kernel(args.function, static_cast<char*>(args.dx.data) + at[0] * size,
           static_cast<const char*>(args.saved.data) + at[1] * size,
           static_cast<const char*>(args.dy.data) + at[2] * size, steps, n);
    i += n;
  }
}

/// Estimated seconds on one core.
inline double seconds(const ActivationBackward::Args& args) {
  using enum ActivationFunction;
  const bool has_exponential = args.function == gelu || args.function == silu;
  const double each = args.flat() ? (has_exponential ? 0.6e-9 : 0.3e-9) : 2e-9;
  return 20e-9 + static_cast<double>(args.dx.size()) * each;
}

}  // namespace rung::activation_backward_cpu
