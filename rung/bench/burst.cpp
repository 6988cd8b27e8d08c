// SPDX-License-Identifier: Apache-2.0
// Cache lines that a strided access touches.
#include "rung/bench/burst.hpp"

#include <algorithm>
#include <cmath>

namespace rung::bench {

double StridedAccess::lines(double line) const {
  double count = 0;
  double next = 0;  // the first line not yet counted: addresses ascend
  for (double i = 0; i < threads; ++i) {
    const double begin = offset + i * stride * element;
    const double first = std::max(next, std::floor(begin / line));
    const double last = std::floor((begin + element - 1) / line);
    count += std::max(0.0, last - first + 1);
    next = std::max(next, last + 1);
  }
  return count;
}

}  // namespace rung::bench
