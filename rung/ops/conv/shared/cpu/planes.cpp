// SPDX-License-Identifier: Apache-2.0
// conv: the shape of padded planes.
#include "rung/ops/conv/shared/cpu/planes.hpp"

#include <algorithm>
#include <cmath>

#include "rung/core/integer.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/conv/shared/cpu/terms.hpp"

namespace rung::conv_cpu {
namespace {

using conv_layer::Gathered;
using conv_layer::SourceAxis;

constexpr std::int64_t max_columns = 512;  // of a band

std::int64_t span_of(const SourceAxis& axis) { return (axis.kernel - 1) * std::abs(axis.between); }

/// Elements of a band's planes, per channel and depth tap.
std::int64_t set_planes(const Gathered& g, PlaneShape& shape) {
  const std::int64_t down = span_of(g.axis[1]);
  const std::int64_t across = span_of(g.axis[2]);
  shape.phases[0] = std::min(g.axis[1].step, down + 1);
  shape.phases[1] = std::min(g.axis[2].step, across + 1);
  shape.height = shape.rows + down / g.axis[1].step;
  shape.pitch = shape.columns + across / g.axis[2].step;
  return shape.phases[0] * shape.phases[1] * shape.height * shape.pitch;
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

PlaneShape plane_shape(const Gathered& g, std::size_t element, int threads) {
  constexpr std::int64_t band_bytes = 256 * 1024;  // of L2
  PlaneShape shape;
  shape.columns = ceil_div(g.axis[2].places, ceil_div(g.axis[2].places, max_columns));
  // As many rows as L2 holds beside the weights, and a task for each thread.
  const std::int64_t across = ceil_div(g.axis[2].places, shape.columns);
  const std::int64_t bands =
      std::max<std::int64_t>(1, g.groups * g.images * g.axis[0].places * across);
  const std::int64_t wanted = threads == 1 ? 1 : ceil_div(std::int64_t{threads} * 4, bands);
  const std::int64_t row_bytes =
      std::max<std::int64_t>(1, g.q * g.axis[0].kernel * static_cast<std::int64_t>(element));
  std::int64_t pieces = std::clamp<std::int64_t>(wanted, 1, g.axis[1].places);
  for (;; ++pieces) {
    shape.rows = ceil_div(g.axis[1].places, pieces);
    const std::int64_t elements = set_planes(g, shape);
    if (shape.rows == 1 || elements <= band_bytes / row_bytes) break;
    // Straight to what would fit if there were no taps below.
    pieces =
        std::max(pieces, ceil_div(elements, std::max<std::int64_t>(1, band_bytes / row_bytes)) / 2);
  }
  // An odd number of cache lines apart, planes do not meet in one set of a cache.
  const auto line = static_cast<std::int64_t>(64 / element);
  const std::int64_t lines = ceil_div(set_planes(g, shape), line);
  shape.plane = (lines | 1) * line;
  return shape;
}

bool all_inside(const Gathered& g) {
  for (const SourceAxis& axis : g.axis) {
    const std::int64_t low = axis.start + first_tap(axis);
    if (low < 0 || low + (axis.places - 1) * axis.step + span_of(axis) >= axis.extent) return false;
  }
  return true;
}

bool planes_in_place(const Gathered& g) {
  const SourceAxis& down = g.axis[1];
  if (size_of(g.dtype) == 2 || g.axis[0].kernel != 1 || g.x_strides[4] != 1) return false;
  if (down.step != 1 || g.axis[2].step != 1 || !all_inside(g)) return false;
  // One row, or whole rows of the image, of which little is no pixel.
  const std::int64_t across = g.axis[2].places;
  if (down.places == 1 && down.kernel == 1) return true;
  return g.x_strides[3] == g.axis[2].extent && g.axis[2].extent <= across + across / 2 &&
         across <= max_columns;
}

bool takes_planes(const Gathered& g) {
  for (const SourceAxis& axis : g.axis) {
    if (axis.divisor != 1 || axis.kernel > 0x3fff) return false;
    if (std::abs(axis.between) > 0x3fff || axis.step > 0x3fff) return false;
  }
  if (g.axis[1].kernel * g.axis[2].kernel > 0x3fff) return false;
  // A row of pixels needs all rows that its taps are in.
  PlaneShape shape{.rows = 1, .columns = std::min<std::int64_t>(g.axis[2].places, 512)};
  constexpr std::int64_t least_plane = 16, rows_of_tile = 6;
  const std::int64_t elements = std::max(set_planes(g, shape), least_plane);
  if (elements > max_copied_elements || g.q * g.axis[0].kernel > max_copied_elements / elements ||
      g.terms() > max_kept_terms) {
    return false;
  }
  return fits_tensors(g, static_cast<double>(round_up(g.m, rows_of_tile) * g.groups) *
                             static_cast<double>(g.terms()));
}

namespace {

/// With channels last pixels are rows, and a vector holds channels.
bool pixels_are_rows(const Gathered& g) { return g.y_strides[1] == 1 && g.m >= enough_channels; }

}  // namespace

double term_seconds(const Gathered& g) {
  if (!pixels_are_rows(g)) {
    if (g.x_strides[4] != 1) return 0.85e-9;
    return g.axis[2].step == 1 ? 0.25e-9 : 0.45e-9;
  }
  if (g.q < enough_channels) return 1e-9;  // one by one
  const double idle = g.m <= 16 ? 0.15e-9 : g.m <= 32 ? 0.06e-9 : 0.01e-9;
  // A tile, or for small types a copy, per tap: the fewer channels, the more of them.
  const bool small = size_of(g.dtype) == 2;
  return idle + (small ? 0.3e-9 : 0) + (small ? 4e-9 : 1.5e-9) / static_cast<double>(g.q);
}

double gathering_seconds(const Gathered& g) {
  const double rate = cpu::isa() == cpu::Isa::avx512 ? 200e9 : 90e9;
  constexpr double a_result = 0.25e-9;
  const auto m = static_cast<double>(g.m);
  const double a_pixel =
      static_cast<double>(g.terms()) * (std::max(6.0, m) * 2 / rate + term_seconds(g)) +
      m * a_result;
  return static_cast<double>(g.groups) * static_cast<double>(g.pixels()) * a_pixel;
}

double planes_seconds(const Gathered& g) {
  const PlaneShape shape = plane_shape(g, 4, 1);
  // Multiply-adds of places that are no pixels, and copying, against gathering terms.
  constexpr double a_row = 0.01e-9, a_copy = 0.3e-9, a_copy_apart = 0.5e-9, a_store_apart = 0.35e-9;
  const auto rows = static_cast<double>(round_up(g.m, 6));
  const auto pixels = static_cast<double>(shape.rows * shape.columns);
  const double places =
      static_cast<double>((shape.rows - 1) * shape.pitch + shape.columns) / pixels;
  const double copied =
      static_cast<double>(shape.plane) / pixels * static_cast<double>(g.q * g.axis[0].kernel);
  const auto terms = static_cast<double>(g.terms());
  // In place a panel reads a few lines of each of many planes, far apart.
  constexpr double a_line_apart = 0.06e-9;
  const bool in_rows = g.x_strides[4] == 1 && g.axis[2].step == 1;
  const double a_read = planes_in_place(g) ? a_line_apart : in_rows ? a_copy : a_copy_apart;
  const double copying = copied * a_read;
  const double storing = pixels_are_rows(g) ? static_cast<double>(g.m) * a_store_apart : 0;
  const double a_pixel =
      terms * (rows * (places - 1) * a_row - term_seconds(g)) + copying + storing;
  return static_cast<double>(g.groups) * static_cast<double>(g.pixels()) * a_pixel;
}

}  // namespace rung::conv_cpu
