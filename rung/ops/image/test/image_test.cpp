// SPDX-License-Identifier: Apache-2.0
// Properties of image that `rung check` does not test: semantics of filters, equal results for all
// layouts, rows with gaps at odd addresses, propagation of infinities, and errors.
#include "rung/ops/image/test/image_test.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace rung {
namespace {

using namespace image_test;

constexpr ImageFilter neighborhoods[] = {ImageFilter::box, ImageFilter::gaussian,
                                          ImageFilter::unsharp, ImageFilter::sobel};

TEST_P(ImageOn, GreyOfKnownColors) {
  // Corners of the RGB cube, values that round down and up, and halves.
  const std::vector<std::uint8_t> colors{0,   0,   0,   255, 0, 0, 0,   255, 0,   0,
                                          0,   255, 255, 255, 0, 0, 255, 255, 255, 0,
                                          255, 255, 255, 255, 1, 1, 1,   3,   0,   1};
  struct {
    GreyWeights weights;
    std::vector<std::uint8_t> wanted;
  } cases[] = {{GreyWeights::tenths, {0, 76, 153, 25, 229, 178, 102, 255, 1, 1}},
               {GreyWeights::tenths_by_term, {0, 76, 153, 25, 229, 178, 101, 254, 0, 0}},
               {GreyWeights::bt601, {0, 76, 150, 29, 226, 179, 105, 255, 1, 1}},
               {GreyWeights::bt709, {0, 54, 182, 18, 237, 201, 73, 255, 1, 1}}};
  Bytes x({1, 10, 3});
  x.values = colors;
  for (const auto& [weights, wanted] : cases) {
    Bytes y({1, 10, 1});
    for_each_rung(x, y, {.weights = weights}, [&] { EXPECT_EQ(y.values, wanted); });
  }
}

TEST_P(ImageOn, GreyOfGreyIsTheSame) {
  Bytes x({2, 128, 3});
  Bytes wanted({2, 128, 1});
  for (std::size_t i = 0; i < wanted.values.size(); ++i) {
    const auto value = static_cast<std::uint8_t>(i);
    wanted.values[i] = value;
    for (std::size_t c = 0; c < 3; ++c) x.values[3 * i + c] = value;
  }
  for (const GreyWeights weights : {GreyWeights::tenths, GreyWeights::bt601, GreyWeights::bt709}) {
    Bytes y({2, 128, 1});
    for_each_rung(x, y, {.weights = weights}, [&] { EXPECT_EQ(y.values, wanted.values); });
  }
}

TEST_P(ImageOn, AlphaIsKept) {
  const Bytes x = random_bytes({9, 43, 4}, 1);
  Bytes grey({9, 43, 2});
  for_each_rung(x, grey, {}, [&] {
    for (std::size_t i = 0; i < 9 * 43; ++i) {
      ASSERT_EQ(grey.values[2 * i + 1], x.values[4 * i + 3]);
    }
  });
  for (const ImageFilter filter : {ImageFilter::unsharp, ImageFilter::sobel}) {
    Bytes y(x.shape);
    for_each_rung(x, y, {.filter = filter}, [&] {
      for (std::size_t i = 3; i < x.values.size(); i += 4) ASSERT_EQ(y.values[i], x.values[i]);
    });
  }
}

TEST_P(ImageOn, AConstantPictureStays) {
  for (const int radius : {0, 1, 2, 5, 8, 15}) {
    for (const std::uint8_t value : {0, 1, 127, 128, 254, 255}) {
      Bytes x({33, 21, 3}, value);
      Bytes y(x.shape);
      for (const ImageFilter filter :
           {ImageFilter::box, ImageFilter::gaussian, ImageFilter::unsharp}) {
        for_each_rung(x, y, {.filter = filter, .radius = radius},
                      [&] { EXPECT_EQ(y.values, x.values) << radius; });
      }
      for_each_rung(x, y, {.filter = ImageFilter::sobel},
                    [&] { EXPECT_EQ(y.values, Bytes(x.shape).values); });
    }
  }
}

TEST_P(ImageOn, AnImpulseGivesTheKernel) {
  constexpr int radius = 3;
  Floats x({20, 31, 3});
  x(9, 14, 1) = 1;
  for (const double sigma : {0.0, 0.7, 5.0}) {
    const double spread = sigma > 0 ? sigma : 0.3 * (radius - 1) + 0.8;
    double g[2 * radius + 1];
    double sum = 0;
    for (int k = -radius; k <= radius; ++k) {
      sum += g[k + radius] = std::exp(-k * k / (2 * spread * spread));
    }
    Floats y(x.shape);
    const ImageOptions options{.filter = ImageFilter::gaussian, .radius = radius, .sigma = sigma};
    for_each_rung(x, y, options, [&] {
      for (int row = 0; row < 20; ++row) {
        for (int column = 0; column < 31; ++column) {
          const int k = row - 9;
          const int l = column - 14;
          const bool reached = std::abs(k) <= radius && std::abs(l) <= radius;
          const double wanted = reached ? g[k + radius] * g[l + radius] / sum / sum : 0;
          ASSERT_NEAR(y(row, column, 1), wanted, 1e-6) << row << ' ' << column;
          ASSERT_EQ(y(row, column, 0), 0);
          ASSERT_EQ(y(row, column, 2), 0);
        }
      }
    });
  }
}

// The mean of the border's repeated pixels, computed by hand.
TEST_P(ImageOn, TheBorderIsRepeated) {
  Bytes x({1, 4, 1});
  x.values = {10, 20, 30, 80};
  Bytes y(x.shape);
  for_each_rung(x, y, {.filter = ImageFilter::box, .radius = 1}, [&] {
    EXPECT_EQ(y.values, (std::vector<std::uint8_t>{13, 20, 43, 63}));
  });
  for_each_rung(x, y, {.filter = ImageFilter::box, .radius = 15}, [&] {
    // 16 - k copies of the first pixel, the two middle ones once each, 13 + k copies of the last.
    EXPECT_EQ(y.values, (std::vector<std::uint8_t>{40, 43, 45, 47}));
  });
}

TEST_P(ImageOn, SobelOfARampIsItsSlope) {
  Floats x({12, 17, 1});
  for (int row = 0; row < 12; ++row) {
    for (int column = 0; column < 17; ++column) {
      x(row, column) = static_cast<float>(3 * column + 4 * row);
    }
  }
  Floats y(x.shape);
  for_each_rung(x, y, {.filter = ImageFilter::sobel}, [&] {
    for (int row = 1; row < 11; ++row) {
      // Eight times the gradient: 8 sqrt(3^2 + 4^2).
      for (int column = 1; column < 16; ++column) ASSERT_FLOAT_EQ(y(row, column), 40);
    }
    ASSERT_FLOAT_EQ(y(5, 0), std::sqrt(12.0F * 12 + 32 * 32));  // half of the horizontal gradient
  });
}

TEST_P(ImageOn, UnsharpWithoutAmountIsTheIdentity) {
  const Bytes x = random_bytes({19, 37, 3}, 2);
  Bytes y(x.shape);
  for_each_rung(x, y, {.filter = ImageFilter::unsharp, .amount = 0},
                [&] { EXPECT_EQ(y.values, x.values); });
}

// Interleaved pictures, planar pictures, and pixels with gaps in rows with gaps at odd addresses
// give equal results.
TEST_P(ImageOn, LayoutsAreLayouts) {
  constexpr std::int64_t rows = 37;
  for (const std::int64_t columns : {1, 45, 86}) {
    for (const std::int64_t channels : {3, 4}) {
      const Bytes x = random_bytes({2, rows, columns, channels}, 3);
      for (const ImageFilter filter : {ImageFilter::grey, ImageFilter::box, ImageFilter::gaussian,
                                       ImageFilter::unsharp, ImageFilter::sobel}) {
        for (const bool keeps_alpha : {false, true}) {
          if (keeps_alpha && (filter != ImageFilter::grey || channels != 4)) continue;
          const std::int64_t results = filter != ImageFilter::grey ? channels : keeps_alpha ? 2 : 1;
          Bytes wanted({2, rows, columns, results});
          image(context, x, wanted, {.filter = filter});
          struct Layout {
            std::int64_t row_gap, pixel_gap;
            bool planar;
          };
          for (const auto& [row_gap, pixel_gap, planar] :
               {Layout{1, 0, false}, Layout{5, 0, false}, Layout{2, 1, false}, Layout{0, 0, true},
                Layout{3, 0, true}}) {
            const auto strides_of = [&](std::int64_t count) {
              const std::int64_t pixel = planar ? 1 : count + pixel_gap;
              const std::int64_t row = columns * pixel + row_gap;
              return planar ? Extents{count * rows * row, rows * row, row, 1}
                            : Extents{rows * row, row, pixel, 1};
            };
            const auto shape_of = [&](std::int64_t count) {
              return planar ? Extents{2, count, rows, columns} : Extents{2, rows, columns, count};
            };
            const auto place = [&](const Extents& s, std::int64_t i, std::int64_t count) {
              const std::int64_t pixel = i / count;
              const std::int64_t picture = pixel / (rows * columns);
              const std::int64_t row = pixel / columns % rows;
              const std::int64_t column = pixel % columns;
              const std::int64_t c = i % count;
              const auto at = planar ? picture * s[0] + c * s[1] + row * s[2] + column
                                     : picture * s[0] + row * s[1] + column * s[2] + c;
              return static_cast<std::size_t>(3 + at);
            };
            const Extents from = strides_of(channels);
            const Extents to = strides_of(results);
            std::vector<std::uint8_t> in(static_cast<std::size_t>(2 * from[0] + 64), 99);
            std::vector<std::uint8_t> out(static_cast<std::size_t>(2 * to[0] + 64), 77);
            for (std::int64_t i = 0; i < x.shape.product(); ++i) {
              in[place(from, i, channels)] = x.values[static_cast<std::size_t>(i)];
            }
            std::vector<std::uint8_t> expected = out;
            for (std::int64_t i = 0; i < wanted.shape.product(); ++i) {
              expected[place(to, i, results)] = wanted.values[static_cast<std::size_t>(i)];
            }
            const std::vector<std::uint8_t> before = out;
            for_each_rung(ConstTensorRef(in.data() + 3, DType::u8, shape_of(channels), from),
                          TensorRef(out.data() + 3, DType::u8, shape_of(results), to),
                          {.filter = filter, .planar = planar}, [&] {
                            EXPECT_EQ(out, expected)
                                << "filter " << static_cast<int>(filter) << ", " << columns << "x"
                                << channels << ", gaps " << row_gap << ' ' << pixel_gap
                                << (planar ? ", planar" : "");
                            out = before;
                          });
          }
        }
      }
    }
  }
}

TEST_P(ImageOn, AnInfinityReachesItsWindowsAlone) {
  for (const ImageFilter filter : {ImageFilter::box, ImageFilter::gaussian}) {
    Floats x({40, 30, 3}, 1.0F);
    x(20, 11, 2) = infinity;
    Floats y(x.shape);
    for_each_rung(x, y, {.filter = filter, .radius = 2}, [&] {
      for (int row = 0; row < 40; ++row) {
        for (int column = 0; column < 30; ++column) {
          for (int c = 0; c < 3; ++c) {
            const bool sees = c == 2 && std::abs(row - 20) <= 2 && std::abs(column - 11) <= 2;
            ASSERT_EQ(std::isinf(y(row, column, c)), sees) << row << ' ' << column << ' ' << c;
            ASSERT_FALSE(std::isnan(y(row, column, c)));
          }
        }
      }
    });
  }
}

TEST_P(ImageOn, TheNumberOfThreadsChangesNoBit) {
  if (GetParam() != Backend::cpu) GTEST_SKIP() << "threads of a CPU";
  std::mt19937 engine(12);
  std::normal_distribution<float> normal;
  Floats x({300, 900, 3});
  for (float& value : x.values) value = normal(engine);
  Context alone = Context::cpu(1);
  Context several = Context::cpu(5);
  for (const ImageFilter filter : neighborhoods) {
    Floats y(x.shape);
    Floats z(x.shape);
    image(alone, x, y, {.filter = filter}, {"threads"});
    image(several, x, z, {.filter = filter}, {"threads"});
    EXPECT_EQ(y.values, z.values);
  }
}

TEST_P(ImageOn, ErrorsNameWhatWasGiven) {
  const auto message = [&](const ConstTensorRef& x, const TensorRef& y,
                           const ImageOptions& options) {
    return message_of([&] { image(context, x, y, options); });
  };
  Bytes rgb({4, 6, 3});
  Bytes rgba({4, 6, 4});
  Bytes grey({4, 6, 1});
  Bytes other({4, 6, 3});
  Floats floats({4, 6, 3});
  std::vector<std::uint16_t> words(72);
  const ImageFilter box = ImageFilter::box;
  expect_text(message(grey, grey, {}), "C = 1, grey already; accepted: C = 3 or 4");
  expect_text(message(rgb, other, {}), "y is 4x6x3; accepted: 4x6x1");
  expect_text(message(rgba, other, {}), "accepted: 4x6x1, or 4x6x2");
  expect_text(message(rgb, rgba, {.filter = box}), "y is 4x6x4; accepted: 4x6x3");
  expect_text(message(Bytes({4, 6, 5}), Bytes({4, 6, 5}), {.filter = box}),
              "C = 5; accepted: C = 1 to 4");
  expect_text(message(Bytes({4, 6}), Bytes({4, 6}), {.filter = box}), "3 axes or more");
  expect_text(message(Bytes({6, 4, 3}), Bytes({6, 4, 3}), {.filter = box, .planar = true}),
              "C x H x W with C = 6");
  expect_text(message(rgb, floats, {.filter = box}), "y is f32; accepted: u8");
  expect_text(message(ConstTensorRef(words, {4, 6, 3}), other, {.filter = box}), "x is u16");
  expect_text(message(rgb, rgb, {.filter = box}), "overlap");
  expect_text(message(rgb, other, {.filter = box, .radius = -1}), "radius is -1");
  expect_text(message(rgb, other, {.filter = box, .radius = 16}),
              "radius is 16; accepted: 0 to 15");
  expect_text(message(rgb, other, {.filter = box, .sigma = -1}), "sigma is -1");
  expect_text(message(rgb, other, {.filter = box, .sigma = std::nan("")}), "sigma is nan");
  expect_text(message(rgb, other, {.filter = box, .amount = 65}), "amount is 65");
  expect_text(message(rgb, other, {.filter = static_cast<ImageFilter>(5)}), "filter is 5");
  expect_text(message(rgb, grey, {.weights = static_cast<GreyWeights>(4)}), "weights is 4");
  expect_text(message(rgb, other, {.filter = box, .edge = static_cast<ImageEdge>(2)}), "edge is 2");
  expect_text(message(rgb, other, {.filter = ImageFilter::gaussian, .edge = ImageEdge::zero}),
              "edge is zero; accepted: zero for box");
  expect_text(message(rgb, grey, {.truncate = true}), "truncate is set; accepted: for box of u8");
  Floats blurred({4, 6, 3});
  expect_text(message(floats, blurred, {.filter = box, .truncate = true}),
              "truncate is set; accepted: for box of u8");
}

INSTANTIATE_TEST_SUITE_P(Backends, ImageOn, backends, name_of_backend);

}  // namespace
}  // namespace rung
