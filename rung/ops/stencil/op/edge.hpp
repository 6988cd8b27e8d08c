// SPDX-License-Identifier: Apache-2.0
// Edge handling shared by all rungs: maps an index outside an array to an element.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/ops/stencil/op/stencil.hpp"

namespace rung::stencil_detail {

/// Returns the index of the element that replaces index i on an axis of `extent` elements; -1 if
/// the value is 0 instead.
RUNG_HD RUNG_ALWAYS_INLINE inline std::int64_t edge_index(std::int64_t i, std::int64_t extent,
                                                          StencilEdge edge) {
  if (i >= 0 && i < extent) return i;
  if (edge == StencilEdge::zero) return -1;
  if (edge == StencilEdge::clamp) return i < 0 ? 0 : extent - 1;
  // wrap and mirror are periodic; the period of mirror is 2 (extent - 1), because it repeats
  // neither end.
  const bool mirrored = edge == StencilEdge::mirror;
  if (mirrored && extent == 1) return 0;
  const std::int64_t period = mirrored ? 2 * (extent - 1) : extent;
  i %= period;
  if (i < 0) i += period;
  return i < extent ? i : period - i;
}

}  // namespace rung::stencil_detail
