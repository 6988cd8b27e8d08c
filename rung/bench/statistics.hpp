// SPDX-License-Identifier: Apache-2.0
// Medians and quartiles: what is reported of repeated measurements. Means are of no use on a shared
// machine, where a few samples are long for reasons that have nothing to do with the code.
#pragma once

#include <span>

namespace rung::bench {

/// The value below which a fraction `p` of the samples lies, interpolated between neighbors (p = 0
/// is the least, 1 the greatest). NaN without samples.
double quantile(std::span<const double> samples, double p);

inline double median(std::span<const double> samples) { return quantile(samples, 0.5); }

/// Returns (third quartile - first quartile) / median; 0 for a single sample.
double spread(std::span<const double> samples);

}  // namespace rung::bench
