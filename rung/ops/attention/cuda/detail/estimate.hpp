// SPDX-License-Identifier: Apache-2.0
// How long a rung takes whose blocks have some queries of one head each and walk over its keys.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/operator.hpp"
#include "rung/ops/attention/op/attention.hpp"

namespace rung::attention_cuda {

struct Blocks {
  double rows = 64;          // queries of a block
  double operations = 1e11;  // a second, of one SM that has enough blocks
  double width_step = 1;     // D and Dv are padded to a multiple of this
  int per_sm = 1;            // that are resident, and needed for that rate
  double bandwidth = 0.8;    // share of the nominal one
  double start = 4e-6;       // seconds of a block beside its keys
  double restart = 0;        // of each that follows it on an SM
};

/// The longest of: moving all once; the operations of the busiest SM, and what its blocks take
/// beside.
inline double seconds_of(const Blocks& kernel, const Attention::Args& args,
                         const Context& context) {
  const Cost cost = Attention::cost(args);
  const auto padded = [&](std::int64_t width) {
    return std::ceil(static_cast<double>(width) / kernel.width_step) * kernel.width_step;
  };
  const double heads = static_cast<double>(args.batch()) * static_cast<double>(args.heads());
  const double blocks = heads * std::ceil(static_cast<double>(args.queries()) / kernel.rows);
  const double pairs = heads * args.visible_pairs();
  // A block computes for all of its rows, whether they exist or not.
  const double filled = heads * static_cast<double>(args.queries()) / (blocks * kernel.rows);
  const double operations =
      2 * pairs / filled * (padded(args.width()) + padded(args.value_width()));
  const double sms = context.info().sms;
  const double waves = std::ceil(blocks / (sms * kernel.per_sm)) * kernel.per_sm;
  const double computing =
      operations / blocks * larger(1.0, smaller(waves, blocks)) / kernel.operations;
  const double moving = cost.bytes / (kernel.bandwidth * nominal_rates(context).bytes_per_second);
  const double restarts = (larger(waves / kernel.per_sm, 1.0) - 1) * kernel.restart;
  return launch_seconds + kernel.start + larger(moving, computing + restarts);
}

}  // namespace rung::attention_cuda
