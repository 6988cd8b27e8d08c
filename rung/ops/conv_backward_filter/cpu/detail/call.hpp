// SPDX-License-Identifier: Apache-2.0
// What conv_backward_filter's CPU rungs share.
#pragma once

#include "rung/core/context.hpp"
#include "rung/ops/conv_backward_filter/conv_backward_filter.hpp"

namespace rung::conv_backward_filter_cpu {

/// terms_by_filters' kernels, for this machine, and what they take.
void terms_by_filters_on(const ConvBackwardFilter::Args& args, Context& context, int threads);
double seconds(const ConvBackwardFilter::Args& args, int threads);

}  // namespace rung::conv_backward_filter_cpu
