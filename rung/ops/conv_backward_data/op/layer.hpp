// SPDX-License-Identifier: Apache-2.0
// Conversion of conv_backward_data's arguments to a gathered layer: dy by w with its axes of
// channels and filters swapped.
#pragma once

#include <algorithm>
#include <utility>

#include "rung/ops/conv/shared/phases.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

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

/// Calls f(layer) for each phase; with a stride of 1, once with the layer itself.
template <class F>
void for_each_phase(const Gathered& g, F&& f) {
  const std::int64_t phases = phases_of(g);
  if (phases == 1) return f(g);
  for (std::int64_t i = 0; i < phases; ++i)
    f(phase_layer(g, i, static_cast<std::int64_t>(size_of(g.dtype))));
}

/// Returns the cost of a layer. Operations include products with padding, but not taps without a
/// result.
inline Cost phase_cost(const ConvBackwardData::Args& args) {
  const ConvGeometry& g = args.geometry;
  Cost cost = ConvBackwardData::cost(args);
  cost.operations = 2 * static_cast<double>(args.dx.size()) *
                    static_cast<double>(g.group_filters()) * static_cast<double>(g.taps());
  for (const ConvAxis& axis : g.axis) {
    cost.operations /= static_cast<double>(lesser(axis.stride, axis.kernel));
  }
  return cost;
}

/// Returns the average number of terms per result, which one thread or block adds in sequence.
inline double terms_in_a_row(const ConvBackwardData::Args& args) {
  if (args.dx.empty()) return 0;
  return phase_cost(args).operations / 2 / static_cast<double>(args.dx.size());
}

}  // namespace rung::conv_layer
