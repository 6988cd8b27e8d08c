// SPDX-License-Identifier: Apache-2.0
// conv's rungs depthwise and small_channels as functions, which conv_backward_data calls on its
// phases.
#pragma once

#include "rung/ops/conv/shared/cuda/layer.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

Support supports_depthwise(const Conv::Args& args, const Context& context);
Work depthwise_facts(const Conv::Args& args, const Context& context);
void run_depthwise(const Conv::Args& args, Context& context);

/// Kernel of depthwise for filters of 3 x 3 to 7 x 7 with stride 1 (depthwise_walks.cu). Returns
/// whether it computes a layer that supports_depthwise() accepts.
bool walks_depthwise(const Conv::Args& args);
Work depthwise_walk_facts(const Conv::Args& args, const Context& context);
void run_depthwise_walk(const Conv::Args& args, Context& context);

Support supports_small_channels(const Conv::Args& args, const Context& context);
Work small_channels_facts(const Conv::Args& args, const Context& context);
void run_small_channels(const Conv::Args& args, Context& context);

}  // namespace rung::conv_cuda::inline RUNG_TARGET
