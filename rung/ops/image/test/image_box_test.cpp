// SPDX-License-Identifier: Apache-2.0
// image's box filter: rounding of means, and the variant taught in courses, which pads with zeros.
#include "rung/ops/image/test/image_test.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace rung {
namespace {

using namespace image_test;
class ImageBoxOn : public ImageOn {};

// Divisions by multiplication must be exact, above all at sums just around half an area above a
// multiple of it.
TEST_P(ImageBoxOn, MeansAreRoundedToNearest) {
  for (int radius = 1; radius <= Image::max_radius; ++radius) {
    const int taps = 2 * radius + 1;
    const int area = taps * taps;
    // Adjacent blocks of T x T; the center of each is the mean of that block alone.
    constexpr int blocks = 40;
    std::mt19937 engine(static_cast<unsigned>(radius));
    Bytes x({taps, taps * blocks, 1});
    std::vector<int> sums(blocks);
    for (int block = 0; block < blocks; ++block) {
      // Just below and just above the rounding threshold.
      const int mean = static_cast<int>(engine() % 255);
      int left = mean * area + area / 2 + block % 2;
      sums[static_cast<std::size_t>(block)] = left;
      for (int i = 0; i < area; ++i) {
        const int value = std::min(255, (left + area - i - 1) / (area - i));
        x(i / taps, block * taps + i % taps) = static_cast<std::uint8_t>(value);
        left -= value;
      }
      ASSERT_EQ(left, 0);
    }
    Bytes y(x.shape);
    for_each_rung(x, y, {.filter = ImageFilter::box, .radius = radius}, [&] {
      for (int block = 0; block < blocks; ++block) {
        const int sum = sums[static_cast<std::size_t>(block)];
        ASSERT_EQ(y(radius, block * taps + radius), (2 * sum + area) / (2 * area)) << radius;
      }
    });
  }
}

// The box blur as taught in courses: zeros outside the picture, and an integer division.
TEST_P(ImageBoxOn, BoxWithZerosOutsideIsTruncated) {
  Bytes x = random_bytes({19, 70, 3}, 7);
  for (const int radius : {0, 1, 2, 4, 8, 15}) {
    const int area = (2 * radius + 1) * (2 * radius + 1);
    Bytes wanted(x.shape);
    for (int i = 0; i < 19; ++i) {
      for (int j = 0; j < 70; ++j) {
        for (int c = 0; c < 3; ++c) {
          int sum = 0;
          for (int k = std::max(i - radius, 0); k <= std::min(i + radius, 18); ++k) {
            for (int l = std::max(j - radius, 0); l <= std::min(j + radius, 69); ++l) {
              sum += x(k, l, c);
            }
          }
          wanted(i, j, c) = static_cast<std::uint8_t>(sum / area);
        }
      }
    }
    Bytes y(x.shape);
    const ImageOptions options{
        .filter = ImageFilter::box, .radius = radius, .edge = ImageEdge::zero, .truncate = true};
    for_each_rung(x, y, options, [&] { ASSERT_EQ(y.values, wanted.values) << radius; });
  }
}

// Exact multiples of the area, and one less: division by multiplication must distinguish them.
TEST_P(ImageBoxOn, MeansAreTruncatedExactly) {
  for (int radius = 1; radius <= Image::max_radius; ++radius) {
    const int taps = 2 * radius + 1;
    for (const int mean : {1, 2, 3, 100, 254, 255}) {
      Bytes x({taps, taps, 1});
      std::fill(x.values.begin(), x.values.end(), static_cast<std::uint8_t>(mean));
      Bytes y(x.shape);
      const ImageOptions options{.filter = ImageFilter::box, .radius = radius, .truncate = true};
      for_each_rung(x, y, options, [&] { ASSERT_EQ(y(radius, radius), mean) << radius; });
      --x(0, 0);
      for_each_rung(x, y, options, [&] { ASSERT_EQ(y(radius, radius), mean - 1) << radius; });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ImageBoxOn, backends, name_of_backend);

}  // namespace
}  // namespace rung
