// SPDX-License-Identifier: Apache-2.0
// Shared by conv_backward_data's CPU rungs.
#pragma once

#include "rung/core/context.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

namespace rung::conv_backward_data_cpu {

/// Computes dx by transposed_simd's kernels for this machine's instruction set.
void transposed_on(const ConvBackwardData::Args& args, Context& context, int threads);
/// Returns the work of transposed_simd on `threads` threads.
Work facts(const ConvBackwardData::Args& args, const Context& context, int threads);

}  // namespace rung::conv_backward_data_cpu
