// SPDX-License-Identifier: Apache-2.0
// Number of threads that pay off for a call.
#pragma once

#include <algorithm>

namespace rung::cpu {

/// Returns how many of `available` threads pay for work that takes one thread so many seconds. A
/// team of two costs 1 us (of 2, 4 and 10 us of work it makes 1.8, 2.9 and 5.7), and their caches
/// exchange the data.
inline int threads_worth(double seconds, int available) {
  constexpr double of_each = 5e-6;
  return static_cast<int>(
      std::clamp(seconds / of_each, 1.0, static_cast<double>(std::max(1, available))));
}

/// Returns how many of `available` threads pay for so many operations, of which a thread does
/// `of_each` while a team wakes.
inline int threads_worth(double operations, double of_each, int available) {
  return static_cast<int>(
      std::clamp(operations / of_each, 1.0, static_cast<double>(std::max(1, available))));
}

}  // namespace rung::cpu
