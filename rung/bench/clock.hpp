// SPDX-License-Identifier: Apache-2.0
// Clock of all measurements.
#pragma once

#include <chrono>

namespace rung::bench {

/// Returns seconds on a monotonic clock with an arbitrary origin. A reading costs some 20 ns: a
/// sample must be far longer.
inline double now() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace rung::bench
