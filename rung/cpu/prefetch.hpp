// SPDX-License-Identifier: Apache-2.0
//
// What kernels do besides reading, by the kind of CPU that they run on.
#pragma once

#include "rung/core/export.hpp"

namespace rung::cpu {

/// Whether kernels should ask for lines that they read in order from the L2 cache: on Intel's
/// cores, where these come late by themselves (measured on Emerald Rapids, not tried on others).
/// RUNG_CPU_PREFETCH=0|1 in the environment, read once, decides otherwise, here and below.
RUNG_API bool asks_for_lines() noexcept;

/// Whether kernels that stream through more than the caches hold should prefetch every line,
/// into L2: on AMD's family 19h (measured on Zen 4: sums of 2^27 floats by two threads at 40 GB/s
/// instead of 26). On Zen 5 asking into L1 cost a fourth; into L2 was not tried there.
RUNG_API bool asks_memory_for_lines() noexcept;

/// Asks for the line of `place`, to be read: into L2, or into L1. Always inlined: around a call, a
/// loop's vectors would have to be kept in memory.
RUNG_ALWAYS_INLINE inline void ask_for_line(const void* place, bool into_l2) noexcept {
  if (into_l2) {
    __builtin_prefetch(place, 0, 2);
  } else {
    __builtin_prefetch(place);
  }
}

}  // namespace rung::cpu
