// SPDX-License-Identifier: Apache-2.0
// How many threads a call is worth.
#pragma once

#include <algorithm>

namespace rung::cpu {

/// Of `available` ones, for work that takes one thread so many seconds. A team costs some 2 us to
/// start and join on an idle machine; on a busy one its threads wait for a core, milliseconds, and
/// small calls should not.
inline int threads_worth(double seconds, int available) {
  constexpr double of_each = 5e-6;
  return static_cast<int>(
      std::clamp(seconds / of_each, 1.0, static_cast<double>(std::max(1, available))));
}

}  // namespace rung::cpu
