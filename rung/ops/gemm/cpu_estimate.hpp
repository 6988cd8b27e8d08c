// SPDX-License-Identifier: Apache-2.0
//
// Rough costs of the CPU rungs, so that the default choice can rank them. Only the order matters;
// the constants are a 2-core Zen 5 vCPU's, and ratios between them hold widely.
#pragma once

#include "rung/ops/gemm/cpu_engine.hpp"

namespace rung::gemm_cpu {

/// Seconds of one core at its arithmetic peak.
inline double peak_seconds(const Call& call) {
  const double width = call.in == DType::f64 ? kernels<double>().lanes : kernels<float>().lanes;
  constexpr double cycles_per_second = 4e9;
  constexpr double per_lane_and_cycle = 4;  // two FMAs
  return 2.0 * static_cast<double>(call.batch) * static_cast<double>(call.m) *
         static_cast<double>(call.n) * static_cast<double>(call.depth()) /
         (width * per_lane_and_cycle * cycles_per_second);
}

/// Threads that a call should use: a team costs about 2 us to start and join, which pays from two
/// 64-cubes on (4 us of one core's work).
inline int threads_worth(const Call& call, int available) {
  constexpr double seconds_a_thread = 2e-6;
  const double most = peak_seconds(call) / seconds_a_thread;
  return most >= available ? available : std::max(1, static_cast<int>(most));
}

/// Of packed multiplication by `threads` threads.
inline double packed_seconds(const Call& call, int threads) {
  const double m = static_cast<double>(call.m), n = static_cast<double>(call.n);
  const double k = static_cast<double>(call.depth()), batch = static_cast<double>(call.batch);
  constexpr double pack_an_element = 0.3e-9, update_an_element = 0.15e-9;
  constexpr double start = 0.3e-6, start_a_thread = 1e-6;
  const double packing = batch * (m * k + k * n) * pack_an_element;
  const double updating = batch * m * n * (1 + k / 512) * update_an_element;
  return start + (threads > 1 ? start_a_thread * threads : 0) +
         (peak_seconds(call) * 1.03 + packing + updating) / threads;
}

}  // namespace rung::gemm_cpu
