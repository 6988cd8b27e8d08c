// SPDX-License-Identifier: Apache-2.0
// How a gathered layer's images are cut into padded planes (planes-inl.hpp), and when that pays.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rung/ops/conv/shared/gathered.hpp"

namespace rung::conv_cpu {

/// With channels last and so many of them, half a vector, pixels are rows and channels columns.
inline constexpr std::int64_t enough_channels = 8;

/// Largest copy of an image per thread, and most terms whose places a thread keeps, in elements.
inline constexpr std::int64_t max_copied_elements = std::int64_t{1} << 21;
inline constexpr std::int64_t max_kept_terms = std::int64_t{1} << 20;

/// Returns true if `elements` of scratch for all threads, weights or sums, are at most 2^22 or
/// as many as the tensors have. Beyond that a rung leaves the call to others: vectors of filters
/// that are mostly empty would take many times the weights' memory.
bool fits_tensors(const conv_layer::Gathered& g, double elements);

/// A band is what one task makes: `rows` x `columns` pixels of an image. Its part of a channel is
/// `phases` planes of `height` rows, `pitch` elements apart.
struct PlaneShape {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t phases[2] = {1, 1};
  std::int64_t height = 1;
  std::int64_t pitch = 1;
  std::int64_t plane = 1;  // from one channel's planes to the next one's, in elements
};

/// The first place, from a pixel's own, that a tap is at: taps may go backwards.
inline std::int64_t first_tap(const conv_layer::SourceAxis& axis) {
  return axis.between < 0 ? (axis.kernel - 1) * axis.between : 0;
}

PlaneShape plane_shape(const conv_layer::Gathered& g, std::size_t element, int threads);

/// Whether no pixel has a tap in the padding.
bool all_inside(const conv_layer::Gathered& g);

/// Whether the image's own channels can be read as planes: no padding, no stride, contiguous rows
/// with little between them, and no type to widen.
bool planes_in_place(const conv_layer::Gathered& g);

/// Whether planes are at all possible: no divisor, and a band of moderate size.
bool takes_planes(const conv_layer::Gathered& g);
/// By how much they are slower than gathering each term, in seconds of one thread; negative where
/// they are faster.
double planes_seconds(const conv_layer::Gathered& g);

}  // namespace rung::conv_cpu
