// SPDX-License-Identifier: Apache-2.0
// Host code of kernels that keep a row of up to 32 elements along any axis but the last in a
// thread's registers; adjacent threads own adjacent rows.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/rows.hpp"
#include "rung/device/target.hpp"

namespace rung::inline RUNG_TARGET {

inline constexpr int short_column_threads = 256;  // per block
inline constexpr int longest_short_column = 32;

template <int N>
std::int64_t short_column_blocks(const Rows<N>& rows) {
  return ceil_div(rows.count(), std::int64_t{short_column_threads});
}

template <int N>
Support require_short_columns(const Rows<N>& rows) {
  constexpr std::int64_t min_run = 8;
  if (rows.length > longest_short_column) return unsupported("rows of up to 32 elements");
  if (!rows.are_adjacent() || rows.run() < min_run) {
    return unsupported("rows must be adjacent, in runs of at least 8");
  }
  return short_column_blocks(rows) > 0x7fffffff ? unsupported("more than 2^31 - 1 blocks")
                                                : supported;
}

/// Calls f<most>() with the number of elements for which a kernel has registers.
template <class F>
void with_column_registers(std::int64_t length, F&& f) {
  if (length <= 8) return f.template operator()<8>();
  if (length <= 16) return f.template operator()<16>();
  f.template operator()<longest_short_column>();
}

}  // namespace rung::inline RUNG_TARGET
