// SPDX-License-Identifier: Apache-2.0
// Order of dependent loads (pointer chasing) through a buffer.
#pragma once

#include "rung/core/export.hpp"

namespace rung::bench {

/// Returns the line after `line` in a cycle through `lines` lines, a power of two. A linear
/// congruential generator: visits every line once, at distances that no prefetcher predicts.
template <class Unsigned>
RUNG_HD constexpr Unsigned line_after(Unsigned line, Unsigned lines) {
  return (line * 1664525u + 1013904223u) & (lines - 1);
}

}  // namespace rung::bench
