// SPDX-License-Identifier: Apache-2.0
// A call of conv_backward_data as a gathered layer: dy by filters whose channels and numbers have
// changed places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
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

/// How many phases a strided layer has: pixels of one phase, i mod stride, have the same taps.
inline std::int64_t phases_of(const Gathered& g) {
  double all = 1;
  for (const SourceAxis& axis : g.axis) {
    all *= static_cast<double>(std::min(axis.divisor, axis.places));
  }
  return all < 0x1p62 ? static_cast<std::int64_t>(all) : std::int64_t{1} << 62;
}

/// The pixels i = first + divisor j of an axis, as one without a divisor: of the taps only each
/// `every`th meets a result. Returns the first of them; -1 where there is none.
struct Phase {
  SourceAxis axis;
  std::int64_t first_tap = -1;
  std::int64_t every = 1;
};
inline Phase phase_of(const SourceAxis& axis, std::int64_t first) {
  const std::int64_t divisor = axis.divisor;
  Phase phase{.axis = axis, .every = divisor / std::gcd(divisor, axis.between)};
  phase.axis.places = (axis.places - first - 1) / divisor + 1;
  phase.axis.divisor = 1;
  phase.axis.between = phase.every * axis.between / divisor;
  for (std::int64_t t = 0; t < std::min(phase.every, axis.kernel); ++t) {
    const std::int64_t at = first + axis.start + t * axis.between;
    if (at % divisor != 0) continue;
    phase.first_tap = t;
    phase.axis.start = at / divisor;
    phase.axis.kernel = (axis.kernel - 1 - t) / phase.every + 1;
    break;
  }
  return phase;
}

/// Phase `index` of a layer, a layer without divisors; with no terms where no tap meets a result.
inline Gathered phase_layer(const Gathered& g, std::int64_t index, std::size_t element) {
  Gathered made = g;
  bool meets = true;
  auto* y = static_cast<std::byte*>(g.y);
  const auto* w = static_cast<const std::byte*>(g.w);
  const auto bytes = static_cast<std::int64_t>(element);
  for (int axis = 2; axis >= 0; --axis) {
    const SourceAxis& whole = g.axis[axis];
    const std::int64_t count = std::min(whole.divisor, whole.places);
    const std::int64_t first = index % count;
    index /= count;
    const Phase phase = phase_of(whole, first);
    made.axis[axis] = phase.axis;
    y += first * g.y_strides[2 + axis] * bytes;
    made.y_strides[2 + axis] = whole.divisor * g.y_strides[2 + axis];
    meets = meets && phase.first_tap >= 0;
    if (!meets) continue;
    w += phase.first_tap * g.w_strides[2 + axis] * bytes;
    made.w_strides[2 + axis] = phase.every * g.w_strides[2 + axis];
  }
  made.y = y;
  made.w = w;
  if (meets) return made;
  made.q = 0;
  made.w = g.w;
  for (int axis = 0; axis < 3; ++axis) {
    made.axis[axis] = {.places = made.axis[axis].places, .extent = g.axis[axis].extent};
  }
  return made;
}

}  // namespace rung::conv_layer
