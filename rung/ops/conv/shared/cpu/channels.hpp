// SPDX-License-Identifier: Apache-2.0
// When a gathered layer is made by vectors of channels (channels-inl.hpp).
#pragma once

#include <cstdint>

#include "rung/ops/conv/shared/gathered.hpp"

namespace rung::conv_cpu {

/// Taps that fit on the stack.
inline constexpr std::int64_t max_depthwise_taps = 128;

/// One filter per channel, channels contiguous; strides of gradients, which divide, come apart into
/// phases first.
inline bool has_channel_vectors(const conv_layer::Gathered& g) {
  return g.q <= 1 && g.m == 1 && g.groups > 1 && g.taps() <= max_depthwise_taps &&
         g.x_strides[1] == 1 && g.y_strides[1] == 1 && g.dtype != DType::f64;
}

/// Seconds that one thread takes.
inline double channel_vectors_seconds(const conv_layer::Gathered& g, int lanes) {
  constexpr double a_tap = 0.3e-9, a_pixel = 1.5e-9, a_row = 15e-9, a_weight = 0.6e-9;
  const auto vectors = static_cast<double>((g.groups + lanes - 1) / lanes);
  const auto pixels = static_cast<double>(g.pixels());
  const auto taps = static_cast<double>(g.taps());
  const double rows = static_cast<double>(g.images * g.axis[0].places * g.axis[1].places) * vectors;
  return pixels * vectors * (taps * a_tap + a_pixel) + rows * a_row +
         taps * static_cast<double>(g.groups) * a_weight;
}

}  // namespace rung::conv_cpu
