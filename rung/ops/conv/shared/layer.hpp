// SPDX-License-Identifier: Apache-2.0
// Conversion of conv's arguments to a gathered layer.
#pragma once

#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/gathered.hpp"

namespace rung::conv_layer {

/// Joins the axes of a 1 x 1 layer with contiguous images into one axis of pixels, so that runs
/// need not end with rows.
inline void join_axes(Gathered& g) {
  std::int64_t behind = 1;
  for (int axis = 2; axis >= 0; --axis) {
    const SourceAxis& one = g.axis[axis];
    if (one.kernel != 1 || one.step != 1 || one.start != 0 || one.divisor != 1) return;
    const bool in_line = one.places == 1 || (g.x_strides[2 + axis] == behind * g.x_strides[4] &&
                                             g.y_strides[2 + axis] == behind * g.y_strides[4]);
    if (!in_line) return;
    behind *= one.places;
  }
  g.axis[0] = g.axis[1] = {};
  g.axis[2].places = g.axis[2].extent = behind;
}

inline Gathered forward(const Conv::Args& args) {
  const ConvGeometry& geometry = args.geometry;
  Gathered g;
  g.dtype = args.x.dtype;
  g.x = args.x.data;
  g.w = args.w.data;
  g.y = args.y.data;
  set_strides(g.x_strides, args.x);
  set_strides(g.w_strides, args.w);
  set_strides(g.y_strides, args.y);
  g.images = geometry.images;
  g.groups = geometry.groups;
  g.m = geometry.group_filters();
  g.q = geometry.group_channels();
  g.w_group = g.m * g.w_strides[0];
  for (int axis = 0; axis < 3; ++axis) g.axis[axis] = forward_axis(geometry.axis[axis]);
  if (args.has_bias()) {
    g.bias = args.options.bias.data;
    g.bias_stride = args.options.bias.strides[0];
  }
  g.activation = args.options.activation;
  join_axes(g);
  return g;
}

}  // namespace rung::conv_layer
