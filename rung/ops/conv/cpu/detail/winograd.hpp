// SPDX-License-Identifier: Apache-2.0
// conv: layers that Winograd's filtering supports, and its predicted time.
#pragma once

#include "rung/core/context.hpp"
#include "rung/ops/conv/op/conv.hpp"

namespace rung::conv_cpu {

Support takes_winograd(const Conv::Args& args, const Context& context);
/// Returns the work of tiles of `tile` pixels along each axis.
Work winograd_facts(const Conv::Args& args, int tile, int threads);

}  // namespace rung::conv_cpu
