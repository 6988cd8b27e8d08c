// SPDX-License-Identifier: Apache-2.0
// Divergence: the lanes of a warp share one instruction, so that a warp of which some lanes take
// another path executes all paths one after another.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>

namespace rung::bench {

/// A warp with lanes on every path.
inline double divergent_seconds(std::span<const double> paths) {
  return std::accumulate(paths.begin(), paths.end(), 0.0);
}

/// A warp of which all lanes take the slowest path.
inline double uniform_seconds(std::span<const double> paths) {
  return *std::max_element(paths.begin(), paths.end());
}

}  // namespace rung::bench
