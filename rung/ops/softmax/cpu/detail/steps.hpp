// SPDX-License-Identifier: Apache-2.0
// Arguments supported by the rungs from `polynomial` to `non_temporal`, and the general kernel of
// row_pipeline and threads.
#pragma once

#include <cmath>

#include "rung/cpu/row_work.hpp"
#include "rung/ops/softmax/op/softmax.hpp"

namespace rung::softmax_cpu {

inline Support supports_contiguous_f32(const Softmax::Args& args, const Context&) {
  if (args.log) return unsupported("without the logarithm");
  if (args.x.dtype != DType::f32 || args.y.dtype != DType::f32) return unsupported("f32 only");
  if (!args.rows.are_contiguous()) return unsupported("contiguous rows only");
  return supported;
}

/// Returns the reciprocal of a row's sum; logarithm() returns its log. Each returns 0 if the sum is
/// 0, as for a row of -infinity only.
template <class Sum>
Sum reciprocal(Sum sum) {
  return sum == 0 ? Sum{0} : 1 / sum;
}
template <class Sum>
Sum logarithm(Sum sum) {
  return sum == 0 ? Sum{0} : std::log(sum);
}

/// Returns the partition of the rows over up to `threads` threads. Defined in 080_row_pipeline.cpp,
/// as is row_pipeline().
cpu::RowTeam divide(const Softmax::Args& args, Context& context, int threads);
/// Kernel that computes one thread's part of the rows; row_pipeline() returns the one for the types
/// of the arguments.
using RowKernel = void(const Softmax::Args& args, const cpu::RowTeam& rows, const cpu::Team& team);
RowKernel* row_pipeline(const Softmax::Args& args);

}  // namespace rung::softmax_cpu
