// SPDX-License-Identifier: Apache-2.0
// Estimates of kernels that may be bound by waiting, not by bandwidth: few blocks, long loops of
// dependent loads, or blocks of which most threads have nothing to do.
//
//   return waiting_seconds(Softmax::cost(args), {.bandwidth = 0.4, .blocks = rows,
//                          .blocks_per_sm = 2, .rounds = length / (4.0 * threads)}, context);
#pragma once

#include "rung/core/bounds.hpp"
#include "rung/core/operator.hpp"

namespace rung {

struct Waiting {
  double bandwidth = 1;      // share of the memory's, once enough blocks are resident
  double blocks = 1;         // of the grid
  double blocks_per_sm = 1;  // that are resident
  double rounds = 0;         // loads of a thread that wait for the one before, or for a barrier
  double fixed = 0;          // seconds of a block beside these
  double round = 0.6e-6;     // a load from memory, or from L2 behind others
  double busy = 0;           // seconds for which a block's instructions occupy an SM
  int launches = 1;
};

/// Launches - without the tail of the last, which waiting is - and what takes longest: moving the
/// bytes, the waves of blocks, or their instructions.
inline double waiting_seconds(const Cost& traffic, const Waiting& kernel, const Context& context) {
  const double resident = kernel.blocks_per_sm * context.info().sms;
  const double waves = larger(1.0, kernel.blocks / resident);
  const double waiting = waves * (kernel.fixed + kernel.rounds * kernel.round);
  const double busy = kernel.blocks / context.info().sms * kernel.busy;
  const double moving =
      traffic.bytes / (kernel.bandwidth * nominal_rates(context).bytes_per_second);
  return kernel.launches * launch_seconds / 2 + larger(moving, larger(waiting, busy));
}

}  // namespace rung
