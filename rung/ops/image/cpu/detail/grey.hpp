// SPDX-License-Identifier: Apache-2.0
// Grey on a CPU. A unit of work is a row, or a panel of a very long one. Pixels that are beside
// each other are taken as they lie; others are gathered into planes first.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/image/cpu/detail/kernels.hpp"

namespace rung::image_cpu {

template <class T>
class Grey {
 public:
  explicit Grey(const Image::Args& args)
      : args_(args),
        panels_(ceil_div(args.columns, panel)),
        interleaved_(lies_interleaved(args.from, args.channels) &&
                     lies_interleaved(args.to, args.out_channels)),
        planar_(args.from.column == 1 && args.to.column == 1) {}

  [[nodiscard]] std::int64_t units() const { return args_.pictures.size() * args_.rows * panels_; }
  /// Elements of T that a thread needs: planes in, planes out.
  static std::int64_t scratch_elements() { return 6 * gathered; }

  void work(cpu::Range share, T* scratch) const {
    for (std::int64_t unit = share.begin; unit < share.end; ++unit) {
      const std::int64_t first = unit % panels_ * panel;
      const std::int64_t row = unit / panels_ % args_.rows;
      std::int64_t picture[2];
      args_.pictures.offsets(unit / panels_ / args_.rows, picture);
      const T* const x = static_cast<const T*>(args_.x.data) + picture[0] + row * args_.from.row +
                         first * args_.from.column;
      T* const y =
          static_cast<T*>(args_.y.data) + picture[1] + row * args_.to.row + first * args_.to.column;
      const std::int64_t count = std::min(panel, args_.columns - first);
      if (interleaved_ || planar_) {
        grey_pixels(pixels_at(x, y, interleaved_), count);
      } else {
        gather(x, y, count, scratch);
      }
    }
  }

 private:
  static constexpr std::int64_t panel = 1 << 16;
  static constexpr std::int64_t gathered = 1024;  // pixels at a time: all planes stay in L1

  static bool lies_interleaved(const Image::Strides& strides, int channels) {
    return (channels == 1 || strides.channel == 1) && strides.column == channels;
  }

  [[nodiscard]] GreyPixels<T> pixels_at(const T* x, T* y, bool interleaved) const {
    GreyPixels<T> pixels{.x = {x},
                         .y = {y, y + args_.to.channel},
                         .channels = args_.channels,
                         .out_channels = args_.out_channels,
                         .interleaved = interleaved,
                         .weights = args_.options.weights};
    for (int c = 1; c < args_.channels; ++c) pixels.x[c] = x + c * args_.from.channel;
    return pixels;
  }

  void gather(const T* x, T* y, std::int64_t count, T* scratch) const {
    GreyPixels<T> planes = pixels_at(scratch, scratch + 4 * gathered, false);
    planes.y[1] = scratch + 5 * gathered;
    for (int c = 1; c < args_.channels; ++c) planes.x[c] = scratch + c * gathered;
    for (std::int64_t first = 0; first < count; first += gathered) {
      const std::int64_t pixels = std::min(gathered, count - first);
      for (int c = 0; c < args_.channels; ++c) {
        const T* const from = x + first * args_.from.column + c * args_.from.channel;
        for (std::int64_t i = 0; i < pixels; ++i) {
          scratch[c * gathered + i] = from[i * args_.from.column];
        }
      }
      grey_pixels(planes, pixels);
      for (int c = 0; c < args_.out_channels; ++c) {
        T* const to = y + first * args_.to.column + c * args_.to.channel;
        for (std::int64_t i = 0; i < pixels; ++i) to[i * args_.to.column] = planes.y[c][i];
      }
    }
  }

  const Image::Args& args_;
  std::int64_t panels_;
  bool interleaved_, planar_;
};

}  // namespace rung::image_cpu
