// SPDX-License-Identifier: Apache-2.0
// The kernel that row_pipeline and threads share, which takes every call.
#pragma once

#include "rung/cpu/row_work.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

namespace rung::softmax_backward_cpu {

/// A call on up to so many threads. Both are defined in 030_row_pipeline.cpp.
cpu::RowTeam divide(const SoftmaxBackward::Args& args, Context& context, int threads);
/// Returns the kernel for the types of a call, which computes one thread's share.
using RowKernel = void(const SoftmaxBackward::Args& args, const cpu::RowTeam& rows,
                       const cpu::Team& team);
RowKernel* row_pipeline(const SoftmaxBackward::Args& args);

}  // namespace rung::softmax_backward_cpu
