// SPDX-License-Identifier: Apache-2.0
// What conv_backward_data's CPU rungs share.
#pragma once

#include "rung/core/context.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

namespace rung::conv_backward_data_cpu {

/// transposed_simd's kernels, for this machine, and what they take.
void transposed_on(const ConvBackwardData::Args& args, Context& context, int threads);
/// transposed_simd: facts of a call on so many threads.
Work facts(const ConvBackwardData::Args& args, const Context& context, int threads);

}  // namespace rung::conv_backward_data_cpu
