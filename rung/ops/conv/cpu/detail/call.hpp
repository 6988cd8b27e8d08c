// SPDX-License-Identifier: Apache-2.0
// What conv's CPU steps share: the time that estimates begin with.
#pragma once

#include "rung/ops/conv/op/conv.hpp"

namespace rung::conv_cpu {

/// What direct_simd takes on so many threads.
double seconds(const Conv::Args& args, int threads);

}  // namespace rung::conv_cpu
