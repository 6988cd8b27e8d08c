// SPDX-License-Identifier: Apache-2.0
// What the steps from `simd` to `non_temporal` take: the case that their kernels are about.
// row_pipeline takes every call.
#pragma once

#include "rung/ops/softmax/softmax.hpp"

namespace rung::softmax_cpu {

inline Support supports_contiguous_f32(const Softmax::Args& args, const Context&) {
  if (args.backward || args.log) return unsupported("forward only, without the logarithm");
  if (args.x.dtype != DType::f32 || args.y.dtype != DType::f32) return unsupported("f32 only");
  if (!args.rows.are_contiguous()) return unsupported("contiguous rows only");
  return supported;
}

/// An ordinary store reads the line that it overwrites: y moves twice.
inline Cost traffic_with_read_for_ownership(const Softmax::Args& args) {
  Cost cost = Softmax::cost(args);
  cost.bytes += static_cast<double>(args.length() * args.count()) * sizeof(float);
  return cost;
}

}  // namespace rung::softmax_cpu
