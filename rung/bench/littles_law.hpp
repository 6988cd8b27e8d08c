// SPDX-License-Identifier: Apache-2.0
// Little's law: in flight = latency x throughput.
// Source: J. Little, Operations Research 9(3), 1961.
#pragma once

#include <cmath>

namespace rung::bench {

/// Bytes that must be in flight for the bandwidth to be reached despite the latency.
constexpr double bytes_in_flight(double latency_seconds, double bytes_per_second) {
  return latency_seconds * bytes_per_second;
}

/// Loads of `bytes` each that make up as many bytes in flight.
inline double loads_in_flight(double in_flight, double bytes) {
  return std::ceil(in_flight / bytes);
}

/// Warps of 32 threads with `loads` independent loads each.
inline double warps_for_loads(double loads_needed, double loads) {
  return std::ceil(loads_needed / (32 * loads));
}

/// Bytes per second at most with `in_flight` bytes pending.
constexpr double bandwidth_of_pending(double in_flight, double latency_seconds) {
  return in_flight / latency_seconds;
}

}  // namespace rung::bench
