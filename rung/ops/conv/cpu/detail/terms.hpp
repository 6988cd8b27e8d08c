// SPDX-License-Identifier: Apache-2.0
// What gathering costs where nothing is made from planes.
#pragma once

#include "rung/ops/conv/gathered.hpp"

namespace rung::conv_cpu {

/// Seconds per term and pixel: of gathering it, and of what its tiles lose to empty lanes.
double term_seconds(const conv_layer::Gathered& g);

}  // namespace rung::conv_cpu
