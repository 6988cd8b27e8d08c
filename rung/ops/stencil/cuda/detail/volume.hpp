// SPDX-License-Identifier: Apache-2.0
// Arguments of the first GPU rungs for three axes: volumes of f32. See image.hpp for one and two
// axes.
#pragma once

#include "rung/ops/stencil/cuda/detail/constant_mask.hpp"

namespace rung::stencil_cuda::inline RUNG_TARGET {

/// One array of planes, rows and columns (axes 0, 1, 2) with contiguous rows. Tap (k, i, j) of
/// element (p, r, c) is x's element (p + k, r + i, c + j) - origin.
struct Volume {
  const float* x;
  float* y;
  int extent[3];
  std::int64_t x_plane, x_row, y_plane, y_row;  // strides
  int taps[3], origin[3];                       // of the mask
  StencilEdge edge;
  float scale;

  /// Returns true for a position outside the array whose value is 0: it is neither loaded nor read.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool is_ghost(int plane, int row, int column) const {
    const bool inside = plane >= 0 && plane < extent[0] && row >= 0 && row < extent[1] &&
                        column >= 0 && column < extent[2];
    return !inside && edge == StencilEdge::zero;
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE bool has(int plane, int row, int column) const {
    return plane < extent[0] && row < extent[1] && column < extent[2];
  }
  /// Returns the element of x at a position that is no ghost.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE const float& element(int plane, int row,
                                                                int column) const {
    return x[edge_index(plane, extent[0], edge) * x_plane +
             edge_index(row, extent[1], edge) * x_row + edge_index(column, extent[2], edge)];
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE float& result(int plane, int row, int column) const {
    return y[plane * y_plane + row * y_row + column];
  }
  [[nodiscard]] __device__ __forceinline__ float weight(int plane, int row, int column) const {
    return constant_mask[(plane * taps[1] + row) * taps[2] + column];
  }
};

// --- on the host ---------------------------------------------------------------------------------

inline Volume volume_of(const Stencil::Args& args, std::int64_t array) {
  std::int64_t at[2];
  args.batch.offsets(array, at);
  Volume volume{.x = static_cast<const float*>(args.x.data) + at[0],
                .y = static_cast<float*>(args.y.data) + at[1],
                .extent = {},
                .x_plane = args.depth().x,
                .x_row = args.rows().x,
                .y_plane = args.depth().y,
                .y_row = args.rows().y,
                .taps = {},
                .origin = {},
                .edge = args.edge,
                .scale = static_cast<float>(args.scale)};
  for (int axis = 0; axis < 3; ++axis) {
    volume.extent[axis] = static_cast<int>(args.axis[axis].extent);
    volume.taps[axis] = args.axis[axis].taps;
    volume.origin[axis] = args.axis[axis].origin;
  }
  return volume;
}

inline Support supports_volume(const Stencil::Args& args, const Context&) {
  if (args.x.dtype != DType::f32) return unsupported("takes f32");
  if (args.weights != Stencil::Weights::mask) return unsupported("takes a mask");
  if (args.axes != 3) return unsupported("takes three axes");
  const Extents& strides = args.mask.strides;
  const std::int64_t layer = std::int64_t{args.rows().taps} * args.columns().taps;
  const bool dense = (args.columns().taps == 1 || strides[2] == 1) &&
                     (args.rows().taps == 1 || strides[1] == args.columns().taps) &&
                     (args.depth().taps == 1 || strides[0] == layer);
  if (!dense) return unsupported("the mask must be contiguous, and is not turned round");
  const Stencil::Axis& columns = args.columns();
  if (columns.extent > 1 && (columns.x != 1 || columns.y != 1)) {
    return unsupported("the rows must be contiguous");
  }
  constexpr std::int64_t most = std::int64_t{1} << 18;  // blocks of side 8 within a grid of 65535
  if (args.depth().extent > most || args.rows().extent > most ||
      columns.extent > std::int64_t{1} << 30) {
    return unsupported("more than 2^18 planes or rows, or 2^30 columns");
  }
  return args.taps() <= constant_taps ? supported : unsupported("more than 961 taps in the mask");
}

/// Calls f(volume) for each array of each iteration.
template <class F>
void for_each_volume(const Stencil::Args& args, Context& context, F&& f) {
  stencil_detail::for_each_step(args, context, 0, [&](const Stencil::Args& step, void*) {
    for (std::int64_t array = 0; array < step.arrays(); ++array) f(volume_of(step, array));
  });
}

}  // namespace rung::stencil_cuda::inline RUNG_TARGET
