// SPDX-License-Identifier: Apache-2.0
// Number of threads worth using for a call.
#pragma once

#include <algorithm>

namespace rung::cpu {

/// Returns how many of `available` threads are worth using for work that takes one thread
/// `seconds`, at least 5 us each. A team of two costs 1 us (it reduces 2, 4 and 10 us of work to
/// 1.8, 2.9 and 5.7) plus the exchange of data between caches.
inline int threads_worth(double seconds, int available) {
  constexpr double of_each = 5e-6;
  return static_cast<int>(
      std::clamp(seconds / of_each, 1.0, static_cast<double>(std::max(1, available))));
}

/// Returns how many of `available` threads are worth using for `operations`, at least `of_each` per
/// thread: the work that one thread does while a team wakes.
inline int threads_worth(double operations, double of_each, int available) {
  return static_cast<int>(
      std::clamp(operations / of_each, 1.0, static_cast<double>(std::max(1, available))));
}

}  // namespace rung::cpu
