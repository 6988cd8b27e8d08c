// SPDX-License-Identifier: Apache-2.0
// conv: which calls Winograd's filtering takes, and how long they take.
#pragma once

#include "rung/core/context.hpp"
#include "rung/ops/conv/op/conv.hpp"

namespace rung::conv_cpu {

Support takes_winograd(const Conv::Args& args, const Context& context);
/// Seconds with tiles of so many pixels along each axis.
Work winograd_facts(const Conv::Args& args, int tile, int threads);

}  // namespace rung::conv_cpu
