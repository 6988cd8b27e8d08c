// SPDX-License-Identifier: Apache-2.0
// Little's law: concurrency = latency x throughput.
// Source: J. Little, Operations Research 9(3), 1961.
#pragma once

#include <cmath>

namespace rung::bench {

/// Returns the bytes that must be in flight to reach the bandwidth.
constexpr double bytes_in_flight(double latency_seconds, double bytes_per_second) {
  return latency_seconds * bytes_per_second;
}

/// Returns the number of loads of `bytes` each for `in_flight` bytes in flight.
inline double loads_in_flight(double in_flight, double bytes) {
  return std::ceil(in_flight / bytes);
}

/// Returns the number of warps for `loads_needed` loads in flight, with `loads` independent loads
/// per thread.
inline double warps_for_loads(double loads_needed, double loads) {
  return std::ceil(loads_needed / (32 * loads));
}

/// Returns the maximum bytes per second with `in_flight` bytes in flight.
constexpr double bandwidth_of_pending(double in_flight, double latency_seconds) {
  return in_flight / latency_seconds;
}

}  // namespace rung::bench
