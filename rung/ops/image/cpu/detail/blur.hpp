// SPDX-License-Identifier: Apache-2.0
// Weights of a blur and rounding of its sums, in plain arithmetic that the compiler vectorizes;
// integers for u8.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "rung/ops/image/cpu/detail/lines.hpp"

namespace rung::image_cpu {

template <class T>
struct Blur {
  static constexpr bool is_u8 = std::is_same_v<T, std::uint8_t>;
  using Sum = std::conditional_t<is_u8, std::int32_t, float>;

  Sum weights[max_taps];
  bool is_box;
  float half, scale;  // rounding term and reciprocal area of a box

  explicit Blur(const Image::Args& args) : is_box(args.filter() == ImageFilter::box) {
    for (int k = -args.radius; k <= args.radius; ++k) {
      if constexpr (is_u8) weights[k + args.radius] = args.blur_256[std::abs(k)];
      if constexpr (!is_u8) weights[k + args.radius] = args.blur[std::abs(k)];
    }
    const int area = args.taps() * args.taps();
    // (n + 1/2) / area is at least 1 / 1922 from an integer, more than the rounding error of f32:
    // the integer part is exact.
    half = static_cast<float>(args.options.truncate ? 0 : area / 2) + 0.5F;
    scale = 1.0F / static_cast<float>(area);
  }

  /// Converts `count` sums over windows to results.
  void finish(const Sum* sums, T* out, std::int64_t count) const {
    if constexpr (!is_u8) {
      const float factor = is_box ? scale : 1;
      for (std::int64_t j = 0; j < count; ++j) out[j] = factor * sums[j];
    } else if (is_box) {
      for (std::int64_t j = 0; j < count; ++j) {
        out[j] = static_cast<T>(static_cast<int>((static_cast<float>(sums[j]) + half) * scale));
      }
    } else {
      for (std::int64_t j = 0; j < count; ++j) out[j] = static_cast<T>((sums[j] + (1 << 15)) >> 16);
    }
  }
};

}  // namespace rung::image_cpu
