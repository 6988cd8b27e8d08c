// SPDX-License-Identifier: Apache-2.0
// What the steps from `simd` to `non_temporal` take: the case that their kernels are about.
// row_pipeline takes every call.
#pragma once

#include "rung/ops/norm/op/lines.hpp"

namespace rung::norm_cpu {

inline Support supports_contiguous_f32(const Norm::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.residual.data != nullptr) return unsupported("no residual");
  if (args.mean.data != nullptr || args.rstd.data != nullptr) {
    return unsupported("y only, neither mean nor rstd");
  }
  if (!norm_lines::lines_of(args).contiguous_columns()) return unsupported("contiguous rows only");
  return supported;
}

}  // namespace rung::norm_cpu
