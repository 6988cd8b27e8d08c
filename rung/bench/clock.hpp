// SPDX-License-Identifier: Apache-2.0
// The clock that every measurement uses.
#pragma once

#include <chrono>

namespace rung::bench {

/// Seconds on a monotonic clock with an arbitrary origin. Reading it costs some 20 ns: a sample has
/// to be far longer than that.
inline double now() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace rung::bench
