// SPDX-License-Identifier: Apache-2.0
// The most frequent windows of networks, which some kernels have as template arguments.
#pragma once

#include <cstdint>

#include "rung/core/operator.hpp"
#include "rung/ops/pool/shared/window.hpp"

namespace rung {

/// Returns supported for undilated windows of 2 x 2 with a stride of 2, or of 3 x 3 with a stride
/// of 1 or 2, and for positions that fit in 32 bits.
inline Support supports_small_window(const PoolAxis& rows, const PoolAxis& columns) {
  constexpr std::int64_t max_extent = std::int64_t{1} << 30;
  if (rows.in > max_extent || columns.in > max_extent) return unsupported("images of up to 2^30");
  const bool square = rows.kernel == columns.kernel && rows.stride == columns.stride;
  const bool small = (rows.kernel == 2 && rows.stride == 2) ||
                     (rows.kernel == 3 && (rows.stride == 1 || rows.stride == 2));
  if (!square || !small || rows.dilation != 1 || columns.dilation != 1) {
    return unsupported("windows of 2 x 2 or 3 x 3 with a stride of 2, 3 x 3 with one of 1");
  }
  return supported;
}

/// Calls f.template operator()<extent, stride>() for a window that supports_small_window() accepts.
template <class F>
void with_small_window(const PoolAxis& axis, F&& f) {
  if (axis.kernel == 2) return f.template operator()<2, 2>();
  if (axis.stride == 2) return f.template operator()<3, 2>();
  f.template operator()<3, 1>();
}

}  // namespace rung
