// SPDX-License-Identifier: Apache-2.0
// How a gathered layer's images are cut into bands of pixels (pixels-inl.hpp), and when that pays.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/ops/conv/shared/cpu/planes.hpp"
#include "rung/ops/conv/shared/gathered.hpp"

namespace rung::conv_cpu {

/// A band is what one task makes: `rows` x `columns` pixels of an image, from a copy of so many
/// rows and columns of it for each tap of the depth.
struct PixelShape {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t copied_rows = 1;
  std::int64_t copied_columns = 1;
};

/// Places of the copy from a pixel to the next one: with one tap there are none in between.
inline std::int64_t copied_step(const conv_layer::SourceAxis& axis) {
  return axis.kernel == 1 ? 1 : axis.step;
}

PixelShape pixel_shape(const conv_layer::Gathered& g, std::size_t element, int threads);

/// Channels last, no divisor, and a band of moderate size.
bool takes_pixels(const conv_layer::Gathered& g);
/// By how much rows of pixels are slower than gathering each term, in seconds of one thread;
/// negative where they are faster.
double pixels_seconds(const conv_layer::Gathered& g);

/// How a layer is made. Of no number of threads: terms are added in other orders.
enum class Way { gathered, planes, pixels };
struct Choice {
  Way way;
  double seconds;  // more than gathering takes
};
Choice fastest_way(const conv_layer::Gathered& g);

}  // namespace rung::conv_cpu
