// SPDX-License-Identifier: Apache-2.0
// The case that the steps from `polynomial` to `non_temporal` are about, and the kernel that
// row_pipeline and threads share, which takes every call.
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

/// Reciprocal and logarithm of a row's sum; 0 for rows of nothing but -infinity, whose sum is 0.
template <class Sum>
Sum reciprocal(Sum sum) {
  return sum == 0 ? Sum{0} : 1 / sum;
}
template <class Sum>
Sum logarithm(Sum sum) {
  return sum == 0 ? Sum{0} : std::log(sum);
}

/// A call on up to so many threads. Both are defined in 080_row_pipeline.cpp.
cpu::RowTeam divide(const Softmax::Args& args, Context& context, int threads);
/// Returns the kernel for the types of a call, which computes one thread's share.
using RowKernel = void(const Softmax::Args& args, const cpu::RowTeam& rows, const cpu::Team& team);
RowKernel* row_pipeline(const Softmax::Args& args);

}  // namespace rung::softmax_cpu
