// SPDX-License-Identifier: Apache-2.0
// The kernels of conv's CPU rungs, for this machine, and what they take: conv's gradients are
// gathered layers too. Each is defined in the rung that its comment names.
#pragma once

#include "rung/core/context.hpp"
#include "rung/ops/conv/shared/gathered.hpp"

namespace rung::conv_cpu {

using conv_layer::Gathered;

/// direct_simd, padded_planes and padded_pixels. Each adds an element's terms in an order of its
/// own.
void direct_on(const Gathered& g, Context& context, int threads);
void planes_on(const Gathered& g, Context& context, int threads);
void pixels_on(const Gathered& g, Context& context, int threads);

/// direct_simd: seconds per term and pixel, of gathering it and of what its tiles lose to empty
/// lanes; and seconds that one thread takes for all terms and results.
double term_seconds(const Gathered& g);
double gathering_seconds(const Gathered& g);
/// padded_planes and padded_pixels: by how many seconds of one thread they are slower than that;
/// negative where they are faster.
double planes_seconds(const Gathered& g);
double pixels_seconds(const Gathered& g);

/// threads: the fastest of these kernels. It does not depend on the number of threads, for the
/// bits of results do not.
struct Choice {
  void (*layer_on)(const Gathered& g, Context& context, int threads);
  double seconds;  // more than gathering takes
};
Choice fastest_way(const Gathered& g);

/// With channels last and so many of them, half a vector, pixels are rows and channels columns.
inline bool channels_are_columns(const Gathered& g) {
  constexpr std::int64_t enough_channels = 8;
  return g.y_strides[1] == 1 && g.m >= enough_channels;
}

/// depthwise: vectors of channels, and the seconds that one thread takes. One filter per channel,
/// channels contiguous; strides of gradients, which divide, come apart into phases first.
inline constexpr std::int64_t max_depthwise_taps = 128;  // which fit on the stack
inline bool has_channel_vectors(const Gathered& g) {
  return g.q <= 1 && g.m == 1 && g.groups > 1 && g.taps() <= max_depthwise_taps &&
         g.x_strides[1] == 1 && g.y_strides[1] == 1 && g.dtype != DType::f64;
}
void channel_vectors_on(const Gathered& g, Context& context, int threads);
double channel_vectors_seconds(const Gathered& g);

}  // namespace rung::conv_cpu
