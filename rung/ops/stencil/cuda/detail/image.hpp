// SPDX-License-Identifier: Apache-2.0
// Arguments of the first GPU rungs: images of f32. The rungs differ only in their kernels: in which
// thread loads which elements.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/stencil/op/edge.hpp"
#include "rung/ops/stencil/op/steps.hpp"

namespace rung::stencil_cuda::inline RUNG_TARGET {

using stencil_detail::edge_index;

/// One array with contiguous rows, and the mask's position. Tap (i, j) of element (row, column) is
/// x's element (row + i - origin_row, column + j - origin_column).
struct Image {
  const float* x;
  float* y;
  int rows, columns;
  std::int64_t x_row, y_row;  // row strides
  int mask_rows, mask_columns, origin_row, origin_column;
  StencilEdge edge;
  float scale;

  /// Returns true for a position outside the array whose value is 0: it is neither loaded nor read.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool is_ghost(int row, int column) const {
    const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
    return !inside && edge == StencilEdge::zero;
  }
  /// Returns the element of x at a position that is no ghost.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE const float& element(int row, int column) const {
    return x[edge_index(row, rows, edge) * x_row + edge_index(column, columns, edge)];
  }
};

// --- on the host ---------------------------------------------------------------------------------

inline Image image_of(const Stencil::Args& args, std::int64_t array) {
  std::int64_t at[2];
  args.batch.offsets(array, at);
  return {.x = static_cast<const float*>(args.x.data) + at[0],
          .y = static_cast<float*>(args.y.data) + at[1],
          .rows = static_cast<int>(args.rows().extent),
          .columns = static_cast<int>(args.columns().extent),
          .x_row = args.rows().x,
          .y_row = args.rows().y,
          .mask_rows = args.rows().taps,
          .mask_columns = args.columns().taps,
          .origin_row = args.rows().origin,
          .origin_column = args.columns().origin,
          .edge = args.edge,
          .scale = static_cast<float>(args.scale)};
}

inline Support supports_rows(const Stencil::Args& args) {
  if (args.x.dtype != DType::f32) return unsupported("takes f32");
  if (args.axes > 2) return unsupported("takes masks of one or two axes");
  const Stencil::Axis& columns = args.columns();
  if (columns.extent > 1 && (columns.x != 1 || columns.y != 1)) {
    return unsupported("the rows must be contiguous");
  }
  // A grid has at most 65535 rows of blocks; columns, and positions beyond them, must fit an int.
  if (args.rows().extent > 65535 * 8 || columns.extent > std::int64_t{1} << 30) {
    return unsupported("more than 524,280 rows or 2^30 columns");
  }
  return supported;
}
/// Accepts problems for the rungs that copy the mask to constant memory as one array.
inline Support supports_image(const Stencil::Args& args, const Context&) {
  if (args.weights != Stencil::Weights::mask) return unsupported("takes a mask");
  const Extents& strides = args.mask.strides;
  const bool dense = (args.columns().taps == 1 || strides[2] == 1) &&
                     (args.rows().taps == 1 || strides[1] == args.columns().taps);
  if (!dense) return unsupported("the mask must be contiguous, and is not turned round");
  return supports_rows(args);
}

/// Calls f(image) for each array of each iteration.
template <class F>
void for_each_image(const Stencil::Args& args, Context& context, F&& f) {
  stencil_detail::for_each_step(args, context, 0, [&](const Stencil::Args& step, void*) {
    for (std::int64_t array = 0; array < step.arrays(); ++array) f(image_of(step, array));
  });
}

}  // namespace rung::stencil_cuda::inline RUNG_TARGET
