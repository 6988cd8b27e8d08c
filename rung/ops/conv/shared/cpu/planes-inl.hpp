// SPDX-License-Identifier: Apache-2.0
// Padded planes: the part of an image that a band of rows needs is copied once, with the padding
// around it. Each tap of each pixel is then an unaligned vector of the copy, at an offset that
// depends on the tap alone.
//
// With a stride of s, a plane is stored as s x s planes of every s-th position, so that neighboring
// pixels are adjacent. Pixels are numbered through the rows of the planes: sums at positions that
// are no pixels are computed and discarded.
#if defined(RUNG_OPS_CONV_CPU_PLANES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_CONV_CPU_PLANES_INL_HPP_
#undef RUNG_OPS_CONV_CPU_PLANES_INL_HPP_
#else
#define RUNG_OPS_CONV_CPU_PLANES_INL_HPP_
#endif

#include <algorithm>

#include "rung/ops/conv/shared/cpu/bands.hpp"
#include "rung/ops/conv/shared/cpu/gather-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::conv_cpu::HWY_NAMESPACE {

/// Bands of rows of all images, whose planes are copied for some channels at a time.
template <class T, class In>
class PlaneBands : public Bands {
 public:
  PlaneBands(const Gathered& g, const PlaneShape& shape)
      : Bands(g, shape.rows, shape.columns), shape_(shape) {}

  [[nodiscard]] const PlaneShape& shape() const { return shape_; }

  /// Sets the offsets of taps (t1, t2) within a plane.
  void set_offsets(std::int32_t* to) const {
    const SourceAxis &down = g_.axis[1], &across = g_.axis[2];
    for (std::int64_t t1 = 0; t1 < down.kernel; ++t1) {
      for (std::int64_t t2 = 0; t2 < across.kernel; ++t2) {
        const std::int64_t h = t1 * down.between - first_tap(down);
        const std::int64_t w = t2 * across.between - first_tap(across);
        const std::int64_t phase = h % down.step * shape_.phases[1] + w % across.step;
        *to++ = static_cast<std::int32_t>((phase * shape_.height + h / down.step) * shape_.pitch +
                                          w / across.step);
      }
    }
  }

  /// Copies the planes of channels [first, first + count) of a band's group.
  void copy(const Band& band, std::int64_t first, std::int64_t count, T* to) const {
    const In* image = static_cast<const In*>(g_.x) + (band.group * g_.q + first) * g_.x_strides[1] +
                      band.n * g_.x_strides[0];
    SourceAxis across = g_.axis[2];
    for (std::int64_t q = 0; q < count; ++q, image += g_.x_strides[1]) {
      for (std::int64_t t0 = 0; t0 < g_.axis[0].kernel; ++t0, to += shape_.plane) {
        const std::int64_t depth = g_.axis[0].source(band.o[0], t0);
        T* row = to;
        for (std::int64_t r1 = 0; r1 < shape_.phases[0]; ++r1) {
          for (std::int64_t r2 = 0; r2 < shape_.phases[1]; ++r2) {
            across.start = g_.axis[2].start + first_tap(g_.axis[2]) + r2;
            for (std::int64_t i = 0; i < shape_.height; ++i, row += shape_.pitch) {
              const std::int64_t h =
                  (band.o[1] + i) * g_.axis[1].step + g_.axis[1].start + first_tap(g_.axis[1]) + r1;
              const bool inside = depth >= 0 && h >= 0 && h < g_.axis[1].extent;
              const In* line =
                  inside ? image + depth * g_.x_strides[2] + h * g_.x_strides[3] : nullptr;
              gather_run(across, line, g_.x_strides[4], band.o[2], 0,
                         static_cast<int>(shape_.pitch), row);
            }
          }
        }
        // The space after the rows, which panels read past the last pixel, must be finite.
        std::fill(row, to + shape_.plane, T{0});
      }
    }
  }

 private:
  PlaneShape shape_;
};

}  // namespace rung::conv_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
