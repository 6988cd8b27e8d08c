// SPDX-License-Identifier: Apache-2.0
// What gathering costs where nothing is made from planes.
#pragma once

#include "rung/ops/conv/shared/gathered.hpp"

namespace rung::conv_cpu {

/// Seconds per term and pixel: of gathering it, and of what its tiles lose to empty lanes.
double term_seconds(const conv_layer::Gathered& g);

/// Seconds of a layer whose terms are all gathered, of one thread: of multiply-adds in full tiles,
/// of gathering and of results.
double gathering_seconds(const conv_layer::Gathered& g);

}  // namespace rung::conv_cpu
