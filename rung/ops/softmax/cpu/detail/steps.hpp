// SPDX-License-Identifier: Apache-2.0
// What the steps from `polynomial` to `non_temporal` take: the case that their kernels are about.
// row_pipeline takes every call.
#pragma once

#include "rung/ops/softmax/op/softmax.hpp"

namespace rung::softmax_cpu {

inline Support supports_contiguous_f32(const Softmax::Args& args, const Context&) {
  if (args.log) return unsupported("without the logarithm");
  if (args.x.dtype != DType::f32 || args.y.dtype != DType::f32) return unsupported("f32 only");
  if (!args.rows.are_contiguous()) return unsupported("contiguous rows only");
  return supported;
}

}  // namespace rung::softmax_cpu
