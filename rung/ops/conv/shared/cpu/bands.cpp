// SPDX-License-Identifier: Apache-2.0
// conv: the shapes of bands of pixels.
#include "rung/ops/conv/shared/cpu/bands.hpp"

#include <cstdlib>

namespace rung::conv_cpu {
namespace {

using conv_layer::Gathered;
using conv_layer::SourceAxis;

std::int64_t span_of(const SourceAxis& axis) { return (axis.kernel - 1) * std::abs(axis.between); }

/// Sets the copy's extents per channel and depth tap; returns its number of elements.
std::int64_t set_copy(const Gathered& g, PlaneShape& shape) {
  const std::int64_t down = span_of(g.axis[1]);
  const std::int64_t across = span_of(g.axis[2]);
  shape.phases[0] = std::min(g.axis[1].step, down + 1);
  shape.phases[1] = std::min(g.axis[2].step, across + 1);
  shape.height = shape.rows + down / g.axis[1].step;
  shape.pitch = shape.columns + across / g.axis[2].step;
  return shape.phases[0] * shape.phases[1] * shape.height * shape.pitch;
}
std::int64_t set_copy(const Gathered& g, PixelShape& shape) {
  shape.copied_rows = (shape.rows - 1) * copied_step(g.axis[1]) + span_of(g.axis[1]) + 1;
  shape.copied_columns = (shape.columns - 1) * copied_step(g.axis[2]) + span_of(g.axis[2]) + 1;
  return shape.copied_rows * shape.copied_columns;
}

/// Returns bands of as many rows as L2 holds beside the weights, with several tasks per thread.
template <class Shape>
Shape cut(const Gathered& g, std::size_t element, int threads) {
  constexpr std::int64_t band_bytes = 256 * 1024, one = 1;
  Shape shape;
  const std::int64_t across = std::max(one, ceil_div(g.axis[2].places, max_band_columns));
  shape.columns = std::max(one, ceil_div(g.axis[2].places, across));
  const std::int64_t bands = std::max(one, g.groups * g.images * g.axis[0].places * across);
  const std::int64_t wanted = threads == 1 ? 1 : ceil_div(std::int64_t{threads} * 4, bands);
  const std::int64_t per_place = g.q * g.axis[0].kernel * static_cast<std::int64_t>(element);
  const std::int64_t room = std::max(one, band_bytes / std::max(one, per_place));
  std::int64_t pieces = std::clamp(wanted, one, std::max(one, g.axis[1].places));
  for (;; ++pieces) {
    shape.rows = std::max(one, ceil_div(g.axis[1].places, pieces));
    const std::int64_t elements = set_copy(g, shape);
    if (shape.rows == 1 || elements <= room) return shape;
    // Starts near the number of pieces that would fit without a halo.
    pieces = std::max(pieces, ceil_div(elements, room) / 2);
  }
}

/// Returns whether a layer has no divisor, offsets that fit in 32 bits, and a copy of a row of
/// pixels that fits in a thread's memory.
template <class Shape>
bool takes_bands(const Gathered& g, std::int64_t least_elements) {
  for (const SourceAxis& axis : g.axis) {
    if (axis.divisor != 1 || axis.kernel > 0x3fff) return false;
    if (std::abs(axis.between) > 0x3fff || axis.step > 0x3fff) return false;
  }
  Shape shape;
  shape.columns = std::min(g.axis[2].places, max_band_columns);
  const std::int64_t elements = std::max(set_copy(g, shape), least_elements);
  return elements <= max_copied_elements &&
         g.q * g.axis[0].kernel <= max_copied_elements / elements && g.terms() <= max_kept_terms;
}

}  // namespace

bool fits_tensors(const Gathered& g, double elements) {
  constexpr double always = 1 << 22;
  const auto groups = static_cast<double>(g.groups);
  const auto terms = static_cast<double>(g.terms());
  double image = static_cast<double>(g.images) * groups * static_cast<double>(g.q);
  for (const SourceAxis& axis : g.axis) image *= static_cast<double>(axis.extent);
  const double results = groups * static_cast<double>(g.m) * static_cast<double>(g.pixels());
  const double weights = groups * static_cast<double>(g.m) * terms;
  return elements <= std::max(always, image + results + weights);
}

bool all_inside(const Gathered& g) {
  for (const SourceAxis& axis : g.axis) {
    const std::int64_t low = axis.start + first_tap(axis);
    if (low < 0 || low + (axis.places - 1) * axis.step + span_of(axis) >= axis.extent) return false;
  }
  return true;
}

PlaneShape plane_shape(const Gathered& g, std::size_t element, int threads) {
  auto shape = cut<PlaneShape>(g, element, threads);
  // With planes an odd number of cache lines apart, planes do not share one cache set.
  const auto line = static_cast<std::int64_t>(64 / element);
  shape.plane = (ceil_div(set_copy(g, shape), line) | 1) * line;
  return shape;
}

bool takes_planes(const Gathered& g) {
  constexpr std::int64_t least_plane = 16, rows_of_tile = 6;
  return g.axis[1].kernel * g.axis[2].kernel <= 0x3fff && takes_bands<PlaneShape>(g, least_plane) &&
         fits_tensors(g, static_cast<double>(round_up(g.m, rows_of_tile) * g.groups) *
                             static_cast<double>(g.terms()));
}

PixelShape pixel_shape(const Gathered& g, std::size_t element, int threads) {
  return cut<PixelShape>(g, element, threads);
}

bool takes_pixels(const Gathered& g) {
  constexpr std::int64_t most_lanes = 16;
  return g.x_strides[1] == 1 && g.y_strides[1] == 1 && takes_bands<PixelShape>(g, 1) &&
         fits_tensors(g, static_cast<double>(round_up(g.m, most_lanes) * g.groups) *
                             static_cast<double>(g.terms() + 1));
}

}  // namespace rung::conv_cpu
