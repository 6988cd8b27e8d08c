// SPDX-License-Identifier: Apache-2.0
// conv's rungs depthwise, depthwise_walks and small_channels as functions, which conv_backward_data
// calls on its phases.
#pragma once

#include "rung/ops/conv/shared/cuda/layer.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

Support supports_depthwise(const Conv::Args& args, const Context& context);
Work depthwise_facts(const Conv::Args& args, const Context& context);
void run_depthwise(const Conv::Args& args, Context& context);

Support supports_depthwise_walks(const Conv::Args& args, const Context& context);
Work depthwise_walks_facts(const Conv::Args& args, const Context& context);
void run_depthwise_walks(const Conv::Args& args, Context& context);

Support supports_small_channels(const Conv::Args& args, const Context& context);
Work small_channels_facts(const Conv::Args& args, const Context& context);
void run_small_channels(const Conv::Args& args, Context& context);

}  // namespace rung::conv_cuda::inline RUNG_TARGET
