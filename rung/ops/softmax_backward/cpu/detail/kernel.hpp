// SPDX-License-Identifier: Apache-2.0
// The general kernel of row_pipeline and threads.
#pragma once

#include "rung/cpu/row_work.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

namespace rung::softmax_backward_cpu {

/// Returns the partition of the rows over up to `threads` threads. Defined in 030_row_pipeline.cpp,
/// as is row_pipeline().
cpu::RowTeam divide(const SoftmaxBackward::Args& args, Context& context, int threads);
/// Kernel that computes one thread's part of the rows; row_pipeline() returns the one for the types
/// of the arguments.
using RowKernel = void(const SoftmaxBackward::Args& args, const cpu::RowTeam& rows,
                       const cpu::Team& team);
RowKernel* row_pipeline(const SoftmaxBackward::Args& args);

}  // namespace rung::softmax_backward_cpu
