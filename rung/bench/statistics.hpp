// SPDX-License-Identifier: Apache-2.0
// Medians and quartiles of repeated measurements. Means are misleading on a shared machine, where
// other processes lengthen a few samples.
#pragma once

#include <span>

namespace rung::bench {

/// Returns the p-quantile of the samples, interpolated linearly (p = 0: the least, 1: the
/// greatest; clamped). NaN without samples.
double quantile(std::span<const double> samples, double p);

inline double median(std::span<const double> samples) { return quantile(samples, 0.5); }

/// Returns (third quartile - first quartile) / median; 0 for fewer than two samples.
double spread(std::span<const double> samples);

}  // namespace rung::bench
