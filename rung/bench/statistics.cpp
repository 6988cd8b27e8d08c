// SPDX-License-Identifier: Apache-2.0
// Quantiles of small samples.
#include "rung/bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace rung::bench {

double quantile(std::span<const double> samples, double p) {
  if (samples.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double place = std::clamp(p, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

double spread(std::span<const double> samples) {
  const double middle = median(samples);
  if (samples.size() < 2 || !(middle > 0)) return 0;
  return (quantile(samples, 0.75) - quantile(samples, 0.25)) / middle;
}

}  // namespace rung::bench
