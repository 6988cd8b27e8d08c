// SPDX-License-Identifier: Apache-2.0
// Bands of pixels of images with channels last: the positions that a band's taps reach are copied
// in their own layout, with the padding around them, and widened, so that the channels of adjacent
// pixels are contiguous. Without padding the image itself is read.
#if defined(RUNG_OPS_CONV_CPU_PIXEL_BANDS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_PIXEL_BANDS_INL_HPP_
#undef RUNG_OPS_CONV_CPU_PIXEL_BANDS_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_PIXEL_BANDS_INL_HPP_
#endif

#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "rung/ops/conv/shared/cpu/bands.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {

template <class T, class In>
class PixelBands : public Bands {
 public:
  PixelBands(const Gathered& g, int threads) : PixelBands(g, pixel_shape(g, sizeof(T), threads)) {}

  /// Returns whether no pixel has a tap in the padding.
  [[nodiscard]] bool all_inside() const { return all_inside_; }
  /// Returns the number of elements of a band's copy.
  [[nodiscard]] std::int64_t length() const {
    return in_place_ ? 0 : g_.axis[0].kernel * place_[0];
  }
  /// Returns the elements from a pixel to the next one in its row; down(): to the one below.
  [[nodiscard]] std::int64_t across() const { return step_[2] * place_[2]; }
  [[nodiscard]] std::int64_t down() const { return step_[1] * place_[1]; }
  /// Returns whether the taps of a row, with all their channels, are contiguous.
  [[nodiscard]] bool taps_contiguous() const {
    return std::abs(g_.axis[2].between) == 1 && place_[2] == g_.q;
  }
  /// Returns the offset of a tap from the first tap of its pixel. Taps are numbered in the order of
  /// memory.
  [[nodiscard]] std::int64_t offset(std::int64_t t0, std::int64_t t1, std::int64_t t2) const {
    // In a copy depth taps are adjacent, whatever their distance in the image.
    const std::int64_t deep = in_place_ ? std::abs(g_.axis[0].between) : 1;
    return t0 * deep * place_[0] + t1 * std::abs(g_.axis[1].between) * place_[1] +
           t2 * std::abs(g_.axis[2].between) * place_[2];
  }

  /// Returns the address of the first tap of a band's first pixel, in the copy or in the image.
  [[nodiscard]] const T* origin(const Band& band, const T* copied) const {
    if constexpr (std::is_same_v<T, In>) {
      if (!in_place_) return copied;
      const T* at = image_of(band);
      for (int axis = 0; axis < 3; ++axis) at += first_place(band, axis) * place_[axis];
      return at;
    }
    return copied;
  }

  /// Copies a band if the image is not read in place: [depth tap][row][column][channel], with zeros
  /// outside the image.
  void copy(const Band& band, T* to) const {
    if (in_place_) return;
    const std::int64_t step = g_.axis[2].step / step_[2];
    const cpu::Range in =
        part_inside(first_place(band, 2), step, g_.axis[2].extent, shape_.copied_columns);
    const std::int64_t pixel = step * g_.x_strides[4];
    const In* image = image_of(band) + first_place(band, 2) * g_.x_strides[4] + in.begin * pixel;
    for (std::int64_t i0 = 0; i0 < g_.axis[0].kernel; ++i0) {
      const std::int64_t d = g_.axis[0].source(band.o[0], tap_at(g_.axis[0], i0));
      for (std::int64_t i = 0; i < shape_.copied_rows; ++i, to += place_[1]) {
        const std::int64_t h = first_place(band, 1) + i * (g_.axis[1].step / step_[1]);
        if (d < 0 || h < 0 || h >= g_.axis[1].extent) {
          clear(to, shape_.copied_columns);
          continue;
        }
        clear(to, in.begin);
        copy_pixels(image + d * g_.x_strides[2] + h * g_.x_strides[3], pixel, in.size(),
                    to + in.begin * g_.q);
        clear(to + in.end * g_.q, shape_.copied_columns - in.end);
      }
    }
  }

 private:
  PixelBands(const Gathered& g, const PixelShape& shape)
      : Bands(g, shape.rows, shape.columns),
        shape_(shape),
        all_inside_(conv_cpu::all_inside(g)),
        in_place_(std::is_same_v<T, In> && all_inside_) {
    // A copy has the positions that taps reach; along an axis with one tap, only every step-th.
    for (int axis = 0; axis < 3; ++axis) {
      place_[axis] = g.x_strides[2 + axis];
      step_[axis] = in_place_ ? g.axis[axis].step : copied_step(g.axis[axis]);
    }
    if (in_place_) return;
    place_[2] = g.q;
    place_[1] = shape_.copied_columns * g.q;
    place_[0] = shape_.copied_rows * place_[1];
  }

  [[nodiscard]] const In* image_of(const Band& band) const {
    return static_cast<const In*>(g_.x) + band.n * g_.x_strides[0] +
           band.group * g_.q * g_.x_strides[1];
  }
  /// Returns the image position of the first tap of a band's first pixel.
  [[nodiscard]] std::int64_t first_place(const Band& band, int axis) const {
    const SourceAxis& a = g_.axis[axis];
    return band.o[axis] * a.step + a.start + first_tap(a);
  }
  void clear(T* to, std::int64_t pixels) const {
    std::memset(to, 0, static_cast<std::size_t>(pixels * g_.q) * sizeof(T));
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

  PixelShape shape_;
  bool all_inside_, in_place_;
  std::int64_t place_[3];  // elements from a position to the next, in the copy or image
  std::int64_t step_[3];   // positions from a pixel to the next
};

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
