// SPDX-License-Identifier: Apache-2.0
// Kernel of conv_backward_filter's rung depthwise for filters of 5 x 5 and 7 x 7 with stride 1
// (depthwise_walks.cu).
#pragma once

#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

/// Returns whether the kernel computes a gradient that the rung supports.
bool walks_gradient(const ConvBackwardFilter::Args& args);
Work gradient_walk_facts(const ConvBackwardFilter::Args& args);
void run_gradient_walk(const ConvBackwardFilter::Args& args, Context& context);

}  // namespace rung::conv_cuda::inline RUNG_TARGET
