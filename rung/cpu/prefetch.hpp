// SPDX-License-Identifier: Apache-2.0
//
// Software prefetching, enabled per CPU family.
#pragma once

#include "rung/core/export.hpp"

namespace rung::cpu {

/// Returns true if kernels should prefetch L1 lines on sequential reads that hit L2: on Intel
/// cores, whose hardware prefetcher is late there (measured on Emerald Rapids only).
/// RUNG_CPU_PREFETCH=0|1 in the environment, read once, overrides this function and
/// prefetches_into_l2().
RUNG_API bool prefetches_into_l1() noexcept;

/// Returns true if kernels that stream through more data than the caches hold should prefetch every
/// line into L2: on AMD's family 19h (measured on Zen 4: sums of 2^27 floats by two threads at 40
/// GB/s instead of 26). On Zen 5, prefetching into L1 was slower by a quarter; L2 was not measured.
RUNG_API bool prefetches_into_l2() noexcept;

/// Prefetches the cache line of `place` for reading, into L2 or L1. Always inlined, since a call
/// would force a loop's vectors out of registers.
RUNG_ALWAYS_INLINE inline void prefetch_line(const void* place, bool into_l2) noexcept {
  if (into_l2) {
    __builtin_prefetch(place, 0, 2);
  } else {
    __builtin_prefetch(place);
  }
}

}  // namespace rung::cpu
