// SPDX-License-Identifier: Apache-2.0
// Estimates of CUDA rungs of pool and pool_backward: few of them are bound by memory. What a window
// costs is index arithmetic, so instructions that an SM must issue, and loads that wait for one
// another.
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/core/operator.hpp"

namespace rung {

struct PoolWork {
  double warps = 1;         // of the grid
  double instructions = 0;  // of a warp; fitted to times, so that stalls are in it
  double chain = 0;         // seconds of a thread's dependent loads
  double bandwidth = 0.6;   // share of the nominal
};

/// Four instructions per cycle of an SM, of some 1.7 GHz.
inline double pool_seconds(const Cost& cost, const PoolWork& work, const Context& context) {
  const double issued = work.warps * work.instructions / (4 * 1.7e9 * context.info().sms);
  const double moving = cost.bytes / (work.bandwidth * nominal_rates(context).bytes_per_second);
  return launch_seconds + work.chain + larger(issued, moving);
}

}  // namespace rung
