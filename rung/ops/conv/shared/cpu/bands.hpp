// SPDX-License-Identifier: Apache-2.0
// Bands of pixels: a gathered layer's images are partitioned into bands, the tasks of threads. All
// taps of a band are in one copy, padding included, that L2 holds. Channels first, the copy is
// planes (planes-inl.hpp); channels last, it is pixels (pixel_bands-inl.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/conv/shared/gathered.hpp"

namespace rung::conv_cpu {

/// Maximum number of elements of the copy of a row of pixels, and of terms whose offsets a thread
/// stores.
inline constexpr std::int64_t max_copied_elements = std::int64_t{1} << 21;
inline constexpr std::int64_t max_kept_terms = std::int64_t{1} << 20;
/// Maximum number of pixels of a band's row.
inline constexpr std::int64_t max_band_columns = 512;

/// Returns true if scratch of `elements` in all, for weights or sums, is at most 2^22 elements or
/// as many as the tensors have. Larger layers are rejected: mostly empty vectors of filters would
/// take many times the weights' memory.
bool fits_tensors(const conv_layer::Gathered& g, double elements);

/// Returns the least offset of a tap from its pixel; negative if taps go backwards.
inline std::int64_t first_tap(const conv_layer::SourceAxis& axis) {
  return axis.between < 0 ? (axis.kernel - 1) * axis.between : 0;
}
/// Returns the tap with number i in the order of memory.
inline std::int64_t tap_at(const conv_layer::SourceAxis& axis, std::int64_t i) {
  return axis.between < 0 ? axis.kernel - 1 - i : i;
}
/// Tap, with indices in the order of memory.
struct Tap {
  std::int64_t t[3];
};
inline Tap tap_at(const conv_layer::Gathered& g, const std::int64_t (&i)[3]) {
  return {{tap_at(g.axis[0], i[0]), tap_at(g.axis[1], i[1]), tap_at(g.axis[2], i[2])}};
}
/// Returns the largest of the nearly equal chunks of `count` that have at most `max` elements.
inline std::int64_t even_chunk(std::int64_t count, std::int64_t max) {
  return count == 0 ? 1 : ceil_div(count, ceil_div(count, max));
}
/// Returns true if no pixel has a tap in the padding.
bool all_inside(const conv_layer::Gathered& g);

/// Band of `rows` x `columns` pixels. Its copy has, per channel, `phases` planes of `height` rows,
/// `pitch` elements apart; channels are `plane` elements apart.
struct PlaneShape {
  std::int64_t rows = 1, columns = 1;
  std::int64_t phases[2] = {1, 1};
  std::int64_t height = 1, pitch = 1, plane = 1;
};
PlaneShape plane_shape(const conv_layer::Gathered& g, std::size_t element, int threads);
/// Returns whether a layer has no divisor and bands of moderate size.
bool takes_planes(const conv_layer::Gathered& g);

/// Band of `rows` x `columns` pixels, and the rows and columns of its copy per depth tap.
struct PixelShape {
  std::int64_t rows = 1, columns = 1;
  std::int64_t copied_rows = 1, copied_columns = 1;
};
PixelShape pixel_shape(const conv_layer::Gathered& g, std::size_t element, int threads);
/// Returns whether a layer has channels last, no divisor and bands of moderate size.
bool takes_pixels(const conv_layer::Gathered& g);

/// Returns the number of positions in the copy from a pixel to the next. With one tap, positions
/// between pixels are not copied.
inline std::int64_t copied_step(const conv_layer::SourceAxis& axis) {
  return axis.kernel == 1 ? 1 : axis.step;
}

/// Band of pixels of one image, depth position and group: `rows` rows from o[1] on, `columns`
/// columns from o[2] on.
struct Band {
  std::int64_t group, n, o[3], rows, columns;
};

/// A layer's bands, numbered within a group image by image.
class Bands {
 public:
  Bands(const conv_layer::Gathered& g, std::int64_t rows, std::int64_t columns)
      : g_(g),
        rows_(rows),
        columns_(columns),
        down_(ceil_div(g.axis[1].places, rows)),
        across_(ceil_div(g.axis[2].places, columns)) {}

  [[nodiscard]] std::int64_t per_image() const { return g_.axis[0].places * down_ * across_; }
  [[nodiscard]] std::int64_t per_group() const { return g_.images * per_image(); }
  [[nodiscard]] Band band_of(std::int64_t group, std::int64_t index) const {
    Band band{
        .group = group, .n = index / per_image(), .o = {}, .rows = rows_, .columns = columns_};
    band.o[0] = index / across_ / down_ % g_.axis[0].places;
    band.o[1] = index / across_ % down_ * rows_;
    band.o[2] = index % across_ * columns_;
    band.rows = std::min(rows_, g_.axis[1].places - band.o[1]);
    band.columns = std::min(columns_, g_.axis[2].places - band.o[2]);
    return band;
  }

 protected:
  const conv_layer::Gathered& g_;  // NOLINT: used by derived bands

 private:
  std::int64_t rows_, columns_, down_, across_;
};

}  // namespace rung::conv_cpu
