// SPDX-License-Identifier: Apache-2.0
// The element used for a position outside an array, shared by all rungs.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/ops/stencil/op/stencil.hpp"

namespace rung::stencil_detail {

/// The element of an axis of `extent` that index i stands for; -1: none, it counts as 0.
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t edge_index(std::int64_t i, std::int64_t extent,
                                                          StencilEdge edge) {
  if (i >= 0 && i < extent) return i;
  if (edge == StencilEdge::zero) return -1;
  if (edge == StencilEdge::clamp) return i < 0 ? 0 : extent - 1;
  // Both others repeat, mirror after there and back without the two ends twice.
  const bool mirrored = edge == StencilEdge::mirror;
  if (mirrored && extent == 1) return 0;
  const std::int64_t period = mirrored ? 2 * (extent - 1) : extent;
  i %= period;
  if (i < 0) i += period;
  return i < extent ? i : period - i;
}

}  // namespace rung::stencil_detail
