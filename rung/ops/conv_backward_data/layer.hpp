// SPDX-License-Identifier: Apache-2.0
// A call of conv_backward_data as a gathered layer: dy by filters whose channels and numbers have
// changed places.
#pragma once

#include <utility>

#include "rung/ops/conv/gathered.hpp"
#include "rung/ops/conv_backward_data/conv_backward_data.hpp"

namespace rung::conv_layer {

inline Gathered transposed(const ConvBackwardData::Args& args) {
  const ConvGeometry& geometry = args.geometry;
  Gathered g;
  g.dtype = args.dx.dtype;
  g.x = args.dy.data;
  g.w = args.w.data;
  g.y = args.dx.data;
  set_strides(g.x_strides, args.dy);
  set_strides(g.w_strides, args.w);
  std::swap(g.w_strides[0], g.w_strides[1]);
  set_strides(g.y_strides, args.dx);
  g.images = geometry.images;
  g.groups = geometry.groups;
  g.m = geometry.group_channels();
  g.q = geometry.group_filters();
  g.w_group = g.q * args.w.strides[0];
  for (int axis = 0; axis < 3; ++axis) g.axis[axis] = backward_axis(geometry.axis[axis]);
  return g;
}

}  // namespace rung::conv_layer
