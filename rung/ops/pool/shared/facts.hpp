// SPDX-License-Identifier: Apache-2.0
// Work of the CUDA rungs of pool and pool_backward for the time model (docs/choice.md). Few of
// these rungs are memory-bound: index arithmetic per window makes most of them bound by instruction
// issue and load latency.
#pragma once

#include "rung/core/operator.hpp"
#include "rung/ops/pool/shared/window.hpp"

namespace rung {

/// Returns the work of blocks of 256 threads, each of which issues `loads` loads in sequence.
inline Work pool_facts(Amount blocks, Amount loads) {
  return {.blocks = blocks, .resident = 8, .rounds = loads, .steps = loads};
}

/// Returns the number of elements in 16 bytes.
inline std::int64_t pack_elements(DType type) {
  return static_cast<std::int64_t>(16 / size_of(type));
}

/// Returns the average number of windows that contain an element of x.
inline double windows_over_one(const auto& args) {
  return static_cast<double>(args.taps()) /
         static_cast<double>(args.rows.stride * args.columns.stride);
}

}  // namespace rung
