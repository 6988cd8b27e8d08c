// SPDX-License-Identifier: Apache-2.0
// What the steps from `simd` to `non_temporal` take: the case that their kernels are about.
// row_pipeline takes every call.
#pragma once

#include "rung/ops/norm/shared/cpu/plan.hpp"

namespace rung::norm_cpu {

inline Support supports_contiguous_f32(const Norm::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  if (args.residual.data != nullptr) return unsupported("no residual");
  if (!norm_lines::lines_of(args).contiguous_columns()) return unsupported("contiguous rows only");
  return supported;
}

/// Of the row whose tensors begin at `at`.
inline void store_statistics(const Norm::Args& args, const std::int64_t (&at)[6],
                             const Scale<float>& scale) {
  if (args.mean.data != nullptr) {
    static_cast<float*>(args.mean.data)[at[norm_lines::row_mean]] = scale.mean;
  }
  if (args.rstd.data != nullptr) {
    static_cast<float*>(args.rstd.data)[at[norm_lines::row_rstd]] = scale.rstd;
  }
}

}  // namespace rung::norm_cpu
