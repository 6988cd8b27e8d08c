// SPDX-License-Identifier: Apache-2.0
// How long softmax's vector rungs take, for the choice between them.
#pragma once

#include "rung/ops/softmax/cpu/detail/kernels.hpp"

namespace rung::softmax_cpu {

/// Of a 2-core Zen 5 vCPU: what an element costs in L2, and what waking a second thread does.
inline constexpr double seconds_per_element = 0.12e-9;
inline constexpr double seconds_to_join = 4e-6;

inline double seconds(const Softmax::Args& args, int threads) {
  const double elements = static_cast<double>(args.length()) * static_cast<double>(args.count());
  const double wide = args.x.dtype == DType::f64 ? 3 : 1;
  return elements * wide * seconds_per_element / threads + (threads > 1 ? seconds_to_join : 0);
}

}  // namespace rung::softmax_cpu
