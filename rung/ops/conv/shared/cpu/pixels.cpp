// SPDX-License-Identifier: Apache-2.0
// conv: the shape of bands of pixels, and which of the ways to make a layer is the fastest.
#include "rung/ops/conv/shared/cpu/pixels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "rung/core/integer.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/conv/shared/cpu/terms.hpp"

namespace rung::conv_cpu {
namespace {

using conv_layer::Gathered;
using conv_layer::SourceAxis;

std::int64_t span_of(const SourceAxis& axis) { return (axis.kernel - 1) * std::abs(axis.between); }

std::int64_t copied(const SourceAxis& axis, std::int64_t places) {
  return (places - 1) * copied_step(axis) + span_of(axis) + 1;
}

/// Elements of a band's copy.
std::int64_t set_copy(const Gathered& g, PixelShape& shape) {
  shape.copied_rows = copied(g.axis[1], shape.rows);
  shape.copied_columns = copied(g.axis[2], shape.columns);
  return shape.copied_rows * shape.copied_columns;
}

}  // namespace

PixelShape pixel_shape(const Gathered& g, std::size_t element, int threads) {
  constexpr std::int64_t band_bytes = 256 * 1024;  // of L2, beside the weights
  constexpr std::int64_t max_columns = 512;
  PixelShape shape;
  const std::int64_t across = std::max<std::int64_t>(1, ceil_div(g.axis[2].places, max_columns));
  shape.columns = std::max<std::int64_t>(1, ceil_div(g.axis[2].places, across));
  // As many rows as L2 holds, and some tasks for each thread.
  const std::int64_t bands =
      std::max<std::int64_t>(1, g.groups * g.images * g.axis[0].places * across);
  const std::int64_t wanted = threads == 1 ? 1 : ceil_div(std::int64_t{threads} * 4, bands);
  const std::int64_t room = std::max<std::int64_t>(
      1, band_bytes / std::max<std::int64_t>(
                          1, g.q * g.axis[0].kernel * static_cast<std::int64_t>(element)));
  std::int64_t pieces =
      std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, g.axis[1].places));
  for (;; ++pieces) {
    shape.rows = std::max<std::int64_t>(1, ceil_div(g.axis[1].places, pieces));
    const std::int64_t elements = set_copy(g, shape);
    if (shape.rows == 1 || elements <= room) return shape;
    // Straight to what would fit if there were no taps below.
    pieces = std::max(pieces, ceil_div(elements, room) / 2);
  }
}

bool takes_pixels(const Gathered& g) {
  if (g.x_strides[1] != 1 || g.y_strides[1] != 1) return false;
  for (const SourceAxis& axis : g.axis) {
    if (axis.divisor != 1 || axis.kernel > 0x3fff) return false;
    if (std::abs(axis.between) > 0x3fff || axis.step > 0x3fff) return false;
  }
  PixelShape shape{.rows = 1, .columns = std::min<std::int64_t>(g.axis[2].places, 512)};
  const std::int64_t elements = set_copy(g, shape);
  if (elements > max_copied_elements || g.q * g.axis[0].kernel > max_copied_elements / elements ||
      g.terms() > max_kept_terms) {
    return false;
  }
  constexpr std::int64_t most_lanes = 16;
  return fits_tensors(g, static_cast<double>(round_up(g.m, most_lanes) * g.groups) *
                             static_cast<double>(g.terms() + 1));
}

namespace {

/// Of the taps of all places of an axis those within the image, where it is padded as usual.
double inside_share(const SourceAxis& axis) {
  const auto padding =
      static_cast<double>(std::max<std::int64_t>(0, -axis.start - first_tap(axis)));
  const auto taps = static_cast<double>(axis.places * axis.kernel);
  if (axis.step != 1 || std::abs(axis.between) != 1 || taps == 0) return 1;
  return std::max(0.2, 1 - padding * (padding + 1) / taps);
}

}  // namespace

double pixels_seconds(const Gathered& g) {
  const double lanes = cpu::isa() == cpu::Isa::avx512 ? 16 : 8;
  const double vectors = std::ceil(static_cast<double>(g.m) / lanes);
  // Of a vector of a term, of copying, of a run of terms, of a pixel, of storing a vector.
  const double a_vector = vectors == 1 ? 0.14e-9 : 0.125e-9;
  constexpr double a_copy = 0.06e-9, a_run = 0.3e-9, a_pixel = 1e-9;
  const double a_store = size_of(g.dtype) == 2 ? 2e-9 : 0.5e-9;
  const PixelShape shape = pixel_shape(g, 4, 1);
  const bool in_place = size_of(g.dtype) != 2 && all_inside(g);
  const double copied = in_place ? 0
                                 : static_cast<double>(shape.copied_rows * shape.copied_columns) /
                                       static_cast<double>(shape.rows * shape.columns) *
                                       static_cast<double>(g.q * g.axis[0].kernel);
  // Lines of taps that no pixel of a tile has are left out.
  const double share = inside_share(g.axis[0]) * inside_share(g.axis[1]);
  const double runs = static_cast<double>(g.axis[0].kernel * g.axis[1].kernel) * vectors;
  const double ours = share * (static_cast<double>(g.terms()) * vectors * a_vector + runs * a_run) +
                      copied * a_copy + a_pixel + vectors * a_store;
  return static_cast<double>(g.groups) * static_cast<double>(g.pixels()) * ours -
         gathering_seconds(g);
}

Choice fastest_way(const Gathered& g) {
  Choice best{Way::gathered, 0};
  if (g.terms() == 0) return best;
  if (takes_planes(g)) {
    const double seconds = planes_seconds(g);
    if (seconds < best.seconds) best = {Way::planes, seconds};
  }
  if (takes_pixels(g)) {
    const double seconds = pixels_seconds(g);
    if (seconds < best.seconds) best = {Way::pixels, seconds};
  }
  return best;
}

}  // namespace rung::conv_cpu
