// SPDX-License-Identifier: Apache-2.0
// image / naive
//
// Idea     The formulas, one pixel and channel at a time. The index of each neighbor is clamped to
//          the picture, or its value is 0 outside.
// Changes  Baseline.
// Cost     T^2 loads and multiply-adds per result of a T x T blur, each after four comparisons.
// Limits   Every valid call; one thread.
// Source   any textbook.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "rung/ops/image/op/image.hpp"

namespace rung {
namespace {

/// A picture, and the filters in the arithmetic of its element type: integers for u8.
template <class T>
struct Picture {
  static constexpr bool is_u8 = std::is_same_v<T, std::uint8_t>;
  using Sum = std::conditional_t<is_u8, std::int32_t, float>;

  const Image::Args& args;
  const T* x;
  T* y;

  [[nodiscard]] T at(std::int64_t row, std::int64_t column, int channel) const {
    if (args.options.edge == ImageEdge::zero) {
      if (row < 0 || row >= args.rows || column < 0 || column >= args.columns) return 0;
    }
    row = std::clamp<std::int64_t>(row, 0, args.rows - 1);
    column = std::clamp<std::int64_t>(column, 0, args.columns - 1);
    return inside(row, column, channel);
  }
  [[nodiscard]] T inside(std::int64_t row, std::int64_t column, int channel) const {
    return x[row * args.from.row + column * args.from.column + channel * args.from.channel];
  }
  void put(std::int64_t row, std::int64_t column, int channel, T value) const {
    y[row * args.to.row + column * args.to.column + channel * args.to.channel] = value;
  }

  [[nodiscard]] T grey(std::int64_t row, std::int64_t column) const {
    const Sum r = inside(row, column, 0);
    const Sum g = inside(row, column, 1);
    const Sum b = inside(row, column, 2);
    const GreyWeights weights = args.options.weights;
    if constexpr (is_u8) {
      if (weights == GreyWeights::tenths) return static_cast<T>((3 * r + 6 * g + b) / 10);
      if (weights == GreyWeights::tenths_by_term) {
        return static_cast<T>(3 * r / 10 + 6 * g / 10 + b / 10);
      }
      const Sum sum = weights == GreyWeights::bt601 ? 9798 * r + 19235 * g + 3735 * b
                                                    : 6966 * r + 23436 * g + 2366 * b;
      return static_cast<T>((sum + (1 << 14)) >> 15);
    } else {
      if (weights == GreyWeights::bt601) return 0.299F * r + 0.587F * g + 0.114F * b;
      if (weights == GreyWeights::bt709) return 0.2126F * r + 0.7152F * g + 0.0722F * b;
      return 0.3F * r + 0.6F * g + 0.1F * b;
    }
  }

  [[nodiscard]] T blur(std::int64_t row, std::int64_t column, int channel) const {
    const int radius = args.radius;
    const auto weight = [&](int k) {
      if constexpr (is_u8) return args.blur_256[std::abs(k)];
      if constexpr (!is_u8) return args.blur[std::abs(k)];
    };
    Sum sum = 0;
    for (int k = -radius; k <= radius; ++k) {
      Sum along_row = 0;
      for (int l = -radius; l <= radius; ++l) {
        along_row += weight(l) * static_cast<Sum>(at(row + k, column + l, channel));
      }
      sum += weight(k) * along_row;
    }
    const int area = args.taps() * args.taps();
    const bool is_box = args.filter() == ImageFilter::box;
    const int rounding = args.options.truncate ? 0 : area / 2;
    if constexpr (is_u8)
      return static_cast<T>(is_box ? (sum + rounding) / area : (sum + (1 << 15)) >> 16);
    if constexpr (!is_u8) return is_box ? sum * (1.0F / static_cast<float>(area)) : sum;
  }

  [[nodiscard]] T unsharp(std::int64_t row, std::int64_t column, int channel) const {
    const Sum value = at(row, column, channel);
    const Sum lost = value - static_cast<Sum>(blur(row, column, channel));
    if constexpr (is_u8) {
      const Sum sharp = value + ((lost * args.amount_256 + (1 << 7)) >> 8);
      return static_cast<T>(std::clamp(sharp, 0, 255));
    } else {
      return value + static_cast<float>(args.options.amount) * lost;
    }
  }

  [[nodiscard]] T sobel(std::int64_t row, std::int64_t column, int channel) const {
    const auto near = [&](int k, int l) {
      return static_cast<Sum>(at(row + k, column + l, channel));
    };
    const Sum across =
        (near(-1, 1) - near(-1, -1)) + 2 * (near(0, 1) - near(0, -1)) + (near(1, 1) - near(1, -1));
    const Sum down =
        (near(1, -1) - near(-1, -1)) + 2 * (near(1, 0) - near(-1, 0)) + (near(1, 1) - near(-1, 1));
    // The sum is at most 2 * 1020^2 for u8: exact in f32.
    const float root = std::sqrt(static_cast<float>(across * across + down * down));
    if constexpr (is_u8) return static_cast<T>(std::min(std::nearbyint(root), 255.0F));
    if constexpr (!is_u8) return root;
  }

  /// Computes y = result(row, column, channel) for each pixel, except where alpha is copied.
  template <class Result>
  void each_pixel(const Result& result) const {
    const int alpha = args.copied_alpha();
    const int filtered_channels = alpha < 0 ? args.out_channels : args.out_channels - 1;
    for (std::int64_t row = 0; row < args.rows; ++row) {
      for (std::int64_t column = 0; column < args.columns; ++column) {
        for (int c = 0; c < filtered_channels; ++c) put(row, column, c, result(row, column, c));
        if (alpha >= 0) put(row, column, filtered_channels, inside(row, column, alpha));
      }
    }
  }

  void filter() const {
    switch (args.filter()) {
      case ImageFilter::grey:
        return each_pixel([this](auto row, auto column, int) { return grey(row, column); });
      case ImageFilter::box:
      case ImageFilter::gaussian:
        return each_pixel([this](auto row, auto column, int c) { return blur(row, column, c); });
      case ImageFilter::unsharp:
        return each_pixel([this](auto row, auto column, int c) { return unsharp(row, column, c); });
      case ImageFilter::sobel:
        return each_pixel([this](auto row, auto column, int c) { return sobel(row, column, c); });
    }
  }
};

void run(const Image::Args& args, Context&) {
  visit<std::uint8_t, float>(args.x.dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < args.pictures.size(); ++i) {
      std::int64_t first[2];
      args.pictures.offsets(i, first);
      Picture<T>{args, static_cast<const T*>(args.x.data) + first[0],
                 static_cast<T*>(args.y.data) + first[1]}
          .filter();
    }
  });
}

const Rung<Image> self{{.name = "naive", .step = 10, .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
