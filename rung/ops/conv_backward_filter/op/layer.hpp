// SPDX-License-Identifier: Apache-2.0
// Conversion of conv_backward_filter's arguments to a gathered layer: conv's own, whose y is dy and
// is only read.
#pragma once

#include "rung/ops/conv/shared/gathered.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung::conv_layer {

/// Returns the layer. Its w is dw, and w_strides and w_group are dw's strides.
inline Gathered of_filters(const ConvBackwardFilter::Args& args) {
  const ConvGeometry& geometry = args.geometry;
  Gathered g;
  g.dtype = args.dw.dtype;
  g.x = args.x.data;
  g.w = args.dw.data;
  g.y = const_cast<void*>(args.dy.data);  // NOLINT: read only
  set_strides(g.x_strides, args.x);
  set_strides(g.w_strides, args.dw);
  set_strides(g.y_strides, args.dy);
  g.images = geometry.images;
  g.groups = geometry.groups;
  g.m = geometry.group_filters();
  g.q = geometry.group_channels();
  g.w_group = g.m * g.w_strides[0];
  for (int axis = 0; axis < 3; ++axis) g.axis[axis] = forward_axis(geometry.axis[axis]);
  return g;
}

}  // namespace rung::conv_layer
