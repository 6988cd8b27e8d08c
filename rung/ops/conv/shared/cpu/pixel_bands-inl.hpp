// SPDX-License-Identifier: Apache-2.0
// Bands of pixels of images with channels last: what the taps of a band reach, with the padding
// around it, is copied as it lies and widened, so that a pixel's channels, and those of its
// neighbors, follow each other. Without padding the image itself is read.
#if defined(RUNG_OPS_CONV_CPU_PIXEL_BANDS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_PIXEL_BANDS_INL_HPP_
#undef RUNG_OPS_CONV_CPU_PIXEL_BANDS_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_PIXEL_BANDS_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"
#include "rung/ops/conv/shared/cpu/pixels.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {

/// Tap number i of an axis in the order of memory.
inline std::int64_t tap_at(const SourceAxis& axis, std::int64_t i) {
  return axis.between < 0 ? axis.kernel - 1 - i : i;
}

template <class T, class In>
class PixelBands {
 public:
  PixelBands(const Gathered& g, int threads)
      : g_(g), shape_(pixel_shape(g, sizeof(T), threads)), all_inside_(conv_cpu::all_inside(g)) {
    in_place_ = std::is_same_v<T, In> && all_inside_;
    if (in_place_) {
      for (int axis = 0; axis < 3; ++axis) {
        place_[axis] = g.x_strides[2 + axis];
        step_[axis] = g.axis[axis].step;
      }
    } else {
      // A copy has what the taps reach; of an axis with one tap only every step-th place.
      for (int axis = 1; axis < 3; ++axis) step_[axis] = conv_cpu::copied_step(g.axis[axis]);
      place_[2] = g.q;
      place_[1] = shape_.copied_columns * g.q;
      place_[0] = shape_.copied_rows * place_[1];
    }
    down_ = ceil_div(g.axis[1].places, shape_.rows);
    across_ = ceil_div(g.axis[2].places, shape_.columns);
  }

  /// Whether no pixel has a tap in the padding, and whether what is read is the image itself.
  [[nodiscard]] bool all_inside() const { return all_inside_; }
  [[nodiscard]] bool in_place() const { return in_place_; }
  /// Bands of all groups, and elements of one's copy.
  [[nodiscard]] std::int64_t count() const {
    return g_.groups * g_.images * g_.axis[0].places * down_ * across_;
  }
  [[nodiscard]] std::int64_t length() const {
    return in_place_ ? 0 : g_.axis[0].kernel * place_[0];
  }
  /// Elements from a pixel to the next one in its row, and to the one below.
  [[nodiscard]] std::int64_t across() const { return step_[2] * place_[2]; }
  [[nodiscard]] std::int64_t down() const { return step_[1] * place_[1]; }
  /// Whether the taps of a row are contiguous, channels of all of them.
  [[nodiscard]] bool taps_contiguous() const {
    return std::abs(g_.axis[2].between) == 1 && place_[2] == g_.q;
  }
  /// From a pixel's first tap to others, which are counted in the order of memory.
  [[nodiscard]] std::int64_t offset(std::int64_t t0, std::int64_t t1, std::int64_t t2) const {
    // A copy has the depth taps one behind the other, whatever is between them.
    const std::int64_t deep = in_place_ ? std::abs(g_.axis[0].between) : 1;
    return t0 * deep * place_[0] + t1 * std::abs(g_.axis[1].between) * place_[1] +
           t2 * std::abs(g_.axis[2].between) * place_[2];
  }

  /// Pixels [o, o + rows) x [o, o + columns) of one image, depth and group.
  struct Band {
    std::int64_t group, n, o[3], rows, columns;
  };
  [[nodiscard]] Band band_of(std::int64_t index) const {
    Band band{};
    band.o[2] = index % across_ * shape_.columns;
    index /= across_;
    band.o[1] = index % down_ * shape_.rows;
    index /= down_;
    band.o[0] = index % g_.axis[0].places;
    index /= g_.axis[0].places;
    band.group = index % g_.groups;  // groups of an image follow each other: their lines are shared
    band.n = index / g_.groups;
    band.rows = std::min(shape_.rows, g_.axis[1].places - band.o[1]);
    band.columns = std::min(shape_.columns, g_.axis[2].places - band.o[2]);
    return band;
  }

  /// The first tap of a band's first pixel, in what copy() made or in the image.
  [[nodiscard]] const T* origin(const Band& band, const T* copied) const {
    if constexpr (std::is_same_v<T, In>) {
      if (!in_place_) return copied;
      const T* at = image_of(band);
      for (int axis = 0; axis < 3; ++axis) {
        const SourceAxis& a = g_.axis[axis];
        at += (band.o[axis] * a.step + a.start + conv_cpu::first_tap(a)) * place_[axis];
      }
      return at;
    }
    return copied;
  }

  /// Where the image is not read: [depth tap][row][column][channel], zeros where there is no image.
  void copy(const Band& band, T* to) const {
    if (in_place_) return;
    const In* image = image_of(band);
    const SourceAxis& across = g_.axis[2];
    const std::int64_t source_step = across.step / step_[2];
    // Columns [begin, end) of the copy are within the image.
    const std::int64_t at = band.o[2] * across.step + across.start + conv_cpu::first_tap(across);
    const std::int64_t columns = shape_.copied_columns;
    const std::int64_t begin =
        std::clamp<std::int64_t>(at >= 0 ? 0 : ceil_div(-at, source_step), 0, columns);
    const std::int64_t room = across.extent - at;
    const std::int64_t end =
        std::clamp<std::int64_t>(room <= 0 ? 0 : ceil_div(room, source_step), begin, columns);
    const std::int64_t pixel = source_step * g_.x_strides[4];
    for (std::int64_t i0 = 0; i0 < g_.axis[0].kernel; ++i0) {
      const std::int64_t d = g_.axis[0].source(band.o[0], tap_at(g_.axis[0], i0));
      for (std::int64_t i = 0; i < shape_.copied_rows; ++i, to += place_[1]) {
        const std::int64_t h = band.o[1] * g_.axis[1].step + g_.axis[1].start +
                               conv_cpu::first_tap(g_.axis[1]) + i * (g_.axis[1].step / step_[1]);
        if (d < 0 || h < 0 || h >= g_.axis[1].extent) {
          std::memset(to, 0, static_cast<std::size_t>(place_[1]) * sizeof(T));
          continue;
        }
        const In* row = image + d * g_.x_strides[2] + h * g_.x_strides[3] + at * g_.x_strides[4];
        std::memset(to, 0, static_cast<std::size_t>(begin * g_.q) * sizeof(T));
        copy_pixels(row + begin * pixel, pixel, end - begin, to + begin * g_.q);
        std::memset(to + end * g_.q, 0,
                    static_cast<std::size_t>((columns - end) * g_.q) * sizeof(T));
      }
    }
  }

 private:
  [[nodiscard]] const In* image_of(const Band& band) const {
    return static_cast<const In*>(g_.x) + band.n * g_.x_strides[0] +
           band.group * g_.q * g_.x_strides[1];
  }

  void copy_pixels(const In* from, std::int64_t pixel, std::int64_t count, T* to) const {
    const auto q = static_cast<int>(g_.q);
    if (pixel == q) {
      copy_strided(to, from, 1, static_cast<int>(count * q));
    } else if (q < 4) {
      for (std::int64_t i = 0; i < count; ++i) {
        for (int k = 0; k < q; ++k) to[i * q + k] = static_cast<T>(from[i * pixel + k]);
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) copy_strided(to + i * q, from + i * pixel, 1, q);
    }
  }

  const Gathered& g_;
  PixelShape shape_;
  bool all_inside_;
  bool in_place_ = false;
  std::int64_t place_[3] = {};        // elements from a place to the next one, of what is read
  std::int64_t step_[3] = {1, 1, 1};  // places from a pixel to the next one
  std::int64_t down_ = 1;
  std::int64_t across_ = 1;
};

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
