// SPDX-License-Identifier: Apache-2.0
// Divergence: the lanes of a warp execute one instruction at a time, so that a warp with lanes on
// several paths executes the paths one after another.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>

namespace rung::bench {

/// Returns the time of a warp with lanes on every path: the sum of the paths.
inline double divergent_seconds(std::span<const double> paths) {
  return std::accumulate(paths.begin(), paths.end(), 0.0);
}

/// Returns the time of a warp with all lanes on the slowest path.
inline double uniform_seconds(std::span<const double> paths) {
  return *std::max_element(paths.begin(), paths.end());
}

}  // namespace rung::bench
