// SPDX-License-Identifier: Apache-2.0
// Properties of pool that `rung check` does not cover: extents, constants and ramps, indices that
// locate the values, special values in every rung, layouts, errors.
#include "rung/ops/pool/op/pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

/// Returns options with one extent for both axes.
PoolOptions square(Pooling kind, int kernel, int stride, int padding = 0) {
  return {.kind = kind, .kernel = kernel, .stride = stride, .padding = padding};
}

class PoolOn : public OnBackend {
 protected:
  /// Calls f(y, rung) after each rung that supports the call; x is N x C x H x W, y is allocated
  /// for it.
  template <class F>
  void on_every_rung(std::vector<float>& x, const Extents& shape, const PoolOptions& options,
                     F&& f) {
    const Extents pooled = pooled_shape(shape, options);
    std::vector<float> y(static_cast<std::size_t>(pooled.product()));
    const TensorRef to(y.data(), pooled);
    for (const std::string_view name :
         picks_for<Pool>({.x = TensorRef(x.data(), shape), .y = to, .options = options}, context)) {
      std::fill(y.begin(), y.end(), -77.0F);
      pool(context, TensorRef(x.data(), shape), to, options, {name});
      f(y, name);
    }
  }

  static Extents pooled_shape(const Extents& x, const PoolOptions& o) {
    return {x[0], x[1],
            pooled_extent(x[2], o.kernel.along(0), o.stride.along(0), o.padding.along(0),
                          o.dilation.along(0), o.ceil_mode),
            pooled_extent(x[3], o.kernel.along(1), o.stride.along(1), o.padding.along(1),
                          o.dilation.along(1), o.ceil_mode)};
  }
};

TEST_P(PoolOn, AConstantStaysOne) {
  std::vector<float> x(2 * 3 * 11 * 41, 0.3F);
  for (const Pooling kind : {Pooling::max, Pooling::average}) {
    PoolOptions options = square(kind, 3, 2, 1);
    options.ceil_mode = true;
    options.count_padding = false;
    on_every_rung(x, {2, 3, 11, 41}, options, [&](const auto& y, std::string_view name) {
      for (const float value : y) ASSERT_NEAR(value, 0.3F, 1e-7F) << name;
    });
  }
}

TEST_P(PoolOn, TheAverageOfARampIsItsMiddle) {
  constexpr std::int64_t height = 9;
  constexpr std::int64_t width = 70;
  std::vector<float> x;
  for (std::int64_t h = 0; h < height; ++h) {
    for (std::int64_t w = 0; w < width; ++w) x.push_back(static_cast<float>(100 * h + w));
  }
  for (const int stride : {1, 2, 3}) {
    on_every_rung(x, {1, 1, height, width}, square(Pooling::average, 3, stride),
                  [&](const auto& y, std::string_view name) {
                    const std::int64_t columns = (width - 3) / stride + 1;
                    for (std::size_t i = 0; i < y.size(); ++i) {
                      const auto at = static_cast<std::int64_t>(i);
                      const std::int64_t h = at / columns * stride + 1;
                      const std::int64_t w = at % columns * stride + 1;
                      ASSERT_EQ(y[i], static_cast<float>(100 * h + w)) << name << ' ' << i;
                    }
                  });
  }
}

TEST_P(PoolOn, PaddingIsCountedWhenAsked) {
  std::vector<float> x(4, 8.0F);  // 2 x 2, with a padding of 1 around it
  PoolOptions options = square(Pooling::average, 2, 2, 1);
  on_every_rung(x, {1, 1, 2, 2}, options, [&](const auto& y, std::string_view name) {
    EXPECT_EQ(y, (std::vector<float>(4, 2.0F))) << name;
  });
  options.count_padding = false;
  on_every_rung(x, {1, 1, 2, 2}, options, [&](const auto& y, std::string_view name) {
    EXPECT_EQ(y, (std::vector<float>(4, 8.0F))) << name;
  });
}

TEST_P(PoolOn, WhatCeilModeAddsIsNotPadding) {
  // The last window has 3 of its 5 columns: two of x and one of padding; the fourth, beyond the
  // padding, is never counted.
  std::vector<float> x(1 * 5, 6.0F);
  PoolOptions options = {.kind = Pooling::average,
                         .kernel = {1, 4},
                         .stride = {1, 4},
                         .padding = {0, 1},
                         .ceil_mode = true};
  on_every_rung(x, {1, 1, 1, 5}, options, [&](const auto& y, std::string_view name) {
    ASSERT_EQ(y.size(), 2U);
    EXPECT_EQ(y[0], 6 * 3 / 4.0F) << name;
    EXPECT_EQ(y[1], 6 * 2 / 3.0F) << name;
  });
}

TEST_P(PoolOn, TheNormOfThreeAndFour) {
  std::vector<float> x{3, 0, 4, 0, -3, -4, 0, 0};
  on_every_rung(x, {1, 1, 1, 8}, {.kind = Pooling::l2, .kernel = {1, 4}, .stride = {1, 4}},
                [&](const auto& y, std::string_view name) {
                  EXPECT_EQ(y, (std::vector<float>{5, 5})) << name;
                });
}

TEST_P(PoolOn, EqualWeightsAverage) {
  auto x = random_values(2 * 2 * 10 * 37, 1, 0, 2);
  std::vector<float> ones(9, 4.0F);
  for (const bool counted : {false, true}) {
    PoolOptions options = square(Pooling::average, 3, 2, 1);
    options.count_padding = counted;
    std::vector<float> average;
    on_every_rung(x, {2, 2, 10, 37}, options,
                  [&](const auto& y, std::string_view) { average = y; });
    options.kind = Pooling::weighted;
    options.weights = ConstTensorRef(ones, {3, 3});
    on_every_rung(x, {2, 2, 10, 37}, options, [&](const auto& y, std::string_view name) {
      for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], average[i], 1e-5) << name;
    });
  }
}

TEST_P(PoolOn, IndicesLeadToTheMaxima) {
  constexpr std::int64_t height = 12;
  constexpr std::int64_t width = 39;
  auto x = random_values(2 * height * width, 2, 0, 2);
  for (const int stride : {1, 2, 3}) {
    PoolOptions options = square(Pooling::max, 3, stride, 1);
    const Extents pooled = pooled_shape({1, 2, height, width}, options);
    std::vector<std::int64_t> indices(static_cast<std::size_t>(pooled.product()));
    options.indices = TensorRef(indices.data(), pooled);
    on_every_rung(x, {1, 2, height, width}, options, [&](const auto& y, std::string_view name) {
      for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t plane = i / (y.size() / 2);
        ASSERT_EQ(x[plane * height * width + static_cast<std::size_t>(indices[i])], y[i]) << name;
      }
      std::fill(indices.begin(), indices.end(), -1);
    });
  }
}

TEST_P(PoolOn, NaNAndInfinitiesAsInPyTorch) {
  // Windows of 1 x 4: ordinary; with NaN first, last and twice; only -infinity; equal values.
  std::vector<float> x{1,         3,         2,         -5,         //
                       nan,       7,         1,         infinity,   //
                       0,         nan,       2,         nan,        //
                       -infinity, -infinity, -infinity, -infinity,  //
                       2,         5,         5,         1};
  const std::int64_t wanted[] = {1, 4, 11, 12, 17};
  std::vector<std::int64_t> indices(5);
  for (const bool with_indices : {false, true}) {
    PoolOptions options{.kernel = {1, 4}};
    if (with_indices) options.indices = TensorRef(indices.data(), {1, 1, 1, 5});
    on_every_rung(x, {1, 1, 1, 20}, options, [&](const auto& y, std::string_view name) {
      EXPECT_EQ(y[0], 3) << name;
      EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2])) << name;
      EXPECT_EQ(y[3], -infinity) << name;
      EXPECT_EQ(y[4], 5) << name;
      for (std::size_t i = 0; with_indices && i < 5; ++i) EXPECT_EQ(indices[i], wanted[i]) << name;
    });
  }
  // The same values as 5 rows of 4 channels, so that vectors run along the other axis.
  std::vector<float> turned(16 * 20);
  for (std::size_t c = 0; c < 16; ++c) {
    for (std::size_t i = 0; i < 20; ++i) turned[i * 16 + c] = x[i];
  }
  std::vector<float> y(16 * 5);
  std::vector<std::int64_t> where(16 * 5);
  PoolOptions options{.kernel = {1, 4}, .channels_last = true};
  options.indices = TensorRef(where.data(), {1, 1, 5, 16});
  pool(context, TensorRef(turned.data(), {1, 1, 20, 16}), TensorRef(y.data(), {1, 1, 5, 16}),
       options);
  for (std::size_t i = 0; i < where.size(); ++i) EXPECT_EQ(where[i], wanted[i / 16]);
  EXPECT_TRUE(std::isnan(y[1 * 16]) && std::isnan(y[2 * 16 + 15]));
}

TEST_P(PoolOn, ChannelsLastIsTheSameNumbers) {
  constexpr std::int64_t c = 21, h = 10, w = 11;
  auto x = random_values(2 * c * h * w, 3, 0, 2);
  auto bias = random_values(c, 4, 0, 2);
  for (const Pooling kind : {Pooling::max, Pooling::average, Pooling::l2}) {
    PoolOptions options = square(kind, 3, 2, 1);
    options.bias = ConstTensorRef(bias);
    options.activation = Activation::relu;
    const Extents pooled = pooled_shape({2, c, h, w}, options);
    std::vector<float> y(static_cast<std::size_t>(pooled.product()));
    // x as N C H W, then permuted by its strides, then with the option channels_last.
    pool(context, TensorRef(x.data(), {2, c, h, w}), TensorRef(y.data(), pooled), options);
    std::vector<float> turned(x.size());
    for (std::int64_t i = 0; i < 2 * c * h * w; ++i) {
      const std::int64_t pixel = i % (h * w);
      const std::int64_t plane = i / (h * w);
      turned[static_cast<std::size_t>(plane / c * c * h * w + pixel * c + plane % c)] =
          x[static_cast<std::size_t>(i)];
    }
    std::vector<float> by_strides(y.size());
    pool(context, TensorRef(turned.data(), {2, c, h, w}, {c * h * w, 1, w * c, c}),
         TensorRef(by_strides.data(), pooled), options);
    std::vector<float> last(y.size());
    options.channels_last = true;
    pool(context, TensorRef(turned.data(), {2, h, w, c}),
         TensorRef(last.data(), {2, pooled[2], pooled[3], c}), options);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(y.size()); ++i) {
      const std::int64_t pixels = pooled[2] * pooled[3];
      const std::int64_t plane = i / pixels;
      const auto at = static_cast<std::size_t>(i);
      ASSERT_NEAR(y[at], by_strides[at], 1e-5) << i;
      ASSERT_NEAR(y[at],
                  last[static_cast<std::size_t>((plane / c * pixels + i % pixels) * c + plane % c)],
                  1e-5)
          << i;
    }
  }
}

TEST_P(PoolOn, BiasAndActivationFollow) {
  std::vector<float> x{1, 3, -9, -5};
  std::vector<float> bias{-1, 2};
  PoolOptions options{.kind = Pooling::average, .kernel = {1, 2}};
  options.bias = ConstTensorRef(bias);
  options.activation = Activation::relu;
  on_every_rung(x, {1, 2, 1, 2}, options, [&](const auto& y, std::string_view name) {
    EXPECT_EQ(y, (std::vector<float>{1, 0})) << name;
  });
}

TEST_P(PoolOn, ErrorsNameWhatWasGiven) {
  std::vector<float> x(2 * 3 * 8 * 8);
  std::vector<float> y(2 * 3 * 8 * 8);
  std::vector<std::int64_t> places(2 * 3 * 4 * 4);
  const TensorRef image(x.data(), {2, 3, 8, 8});
  const TensorRef half(y.data(), {2, 3, 4, 4});
  const auto expect = [&](const TensorRef& to, const PoolOptions& options,
                          const std::string& words) {
    expect_text(message_of([&] { pool(context, image, to, options); }), words);
  };
  const PoolOptions right = square(Pooling::max, 2, 2);
  pool(context, image, half, right);
  expect(TensorRef(y.data(), {2, 3, 4, 5}), right, "2x3x4x4");
  PoolOptions wrong = right;
  wrong.kind = static_cast<Pooling>(9);
  expect(half, wrong, "kind is 9");
  wrong = right;
  wrong.kernel = {1, 0};
  expect(half, wrong, "columns: kernel 0");
  wrong = square(Pooling::max, 2, 2, 2);
  expect(half, wrong, "rows: padding 2 of windows that span 2");
  wrong = square(Pooling::max, 9, 1);
  expect(half, wrong, "rows: windows span 9");
  wrong = right;
  wrong.weights = ConstTensorRef(x, {2, 2});
  expect(half, wrong, "weights are given");
  wrong.kind = Pooling::weighted;
  wrong.weights = {};
  expect(half, wrong, "weights are left out");
  wrong.weights = ConstTensorRef(x, {2, 3});
  expect(half, wrong, "weights");
  wrong = right;
  wrong.kind = Pooling::average;
  wrong.indices = TensorRef(places.data(), {2, 3, 4, 4});
  expect(half, wrong, "indices are given");
  wrong = right;
  wrong.indices = TensorRef(y.data() + 96, {2, 3, 4, 4});
  expect(half, wrong, "indices is f32");
  wrong = right;
  wrong.bias = ConstTensorRef(y.data() + 200, {4});
  expect(half, wrong, "bias");
  expect(TensorRef(x.data(), {2, 3, 4, 4}), right, "overlap");
  const std::string rank = message_of([&] {
    pool(context, TensorRef(x.data(), {6, 8, 8}), half, right);
  });
  expect_text(rank, "x has 3 axes");
}

TEST_P(PoolOn, AWindowOutsideOfTheImageIsRefused) {
  // Taps at -1 and 2 of an image of two columns.
  std::vector<float> x(2);
  std::vector<float> y(1);
  const PoolOptions options{.kernel = {1, 2}, .padding = {0, 1}, .dilation = {1, 3}};
  const std::string message = message_of([&] {
    pool(context, TensorRef(x.data(), {1, 1, 1, 2}), TensorRef(y.data(), {1, 1, 1, 1}), options);
  });
  expect_text(message, "columns: a window of 2 taps, 3 apart, is outside");
}

TEST_P(PoolOn, EmptyTensorsAreLeftAlone) {
  std::vector<float> y(4, 3.0F);
  pool(context, {nullptr, DType::f32, Extents{0, 3, 4, 4}}, TensorRef(y.data(), {0, 3, 2, 2}),
       square(Pooling::max, 2, 2));
  EXPECT_EQ(y, std::vector<float>(4, 3.0F));
}

INSTANTIATE_TEST_SUITE_P(Backends, PoolOn, backends, name_of_backend);

TEST(PoolCpu, AnyNumberOfThreadsGivesTheSameBits) {
  auto x = random_values(3 * 5 * 61 * 77, 5, 0, 2);
  for (const Pooling kind : {Pooling::max, Pooling::average, Pooling::l2}) {
    const PoolOptions options = square(kind, 3, 2, 1);
    std::vector<float> one;
    for (const int threads : {1, 2, 3, 7}) {
      Context context = Context::cpu(threads);
      std::vector<float> y(3 * 5 * 31 * 39);
      pool(context, TensorRef(x.data(), {3, 5, 61, 77}), TensorRef(y.data(), {3, 5, 31, 39}),
           options);
      if (threads == 1) one = y;
      EXPECT_EQ(y, one) << threads;
    }
  }
}

// Images and kernels whose extents exceed their memory: broadcast, or mostly over padding.
TEST(PoolCpu, BoundsItsScratchForBroadcastTensors) {
  struct BroadcastCall {
    Extents x;
    PoolOptions options;
  };
  constexpr int wide = 1 << 20;
  PoolOptions padded{.kind = Pooling::weighted, .kernel = {wide + 1, 1}, .padding = {wide / 2, 0}};
  const std::vector<BroadcastCall> calls = {
      {{1, 1, 16, wide}, square(Pooling::average, 1, 1)},
      {{1, 1, 16, wide}, {.kernel = {16, 3}, .stride = {16, 1000}}},
      {{1, 1, 5, 5}, padded},
      {{1, 1, 1, 1}, {.kernel = {1, 3}, .padding = {0, 1 << 30}, .dilation = {1, 1 << 30}}},
  };
  float one = 1;
  for (const BroadcastCall& call : calls) {
    PoolOptions options = call.options;
    if (options.kind == Pooling::weighted) {
      options.weights = ConstTensorRef(&one, {options.kernel.along(0), 1}, Extents{0, 0});
    }
    const Extents shape{1, 1,
                        pooled_extent(call.x[2], options.kernel.along(0), options.stride.along(0),
                                      options.padding.along(0), options.dilation.along(0)),
                        pooled_extent(call.x[3], options.kernel.along(1), options.stride.along(1),
                                      options.padding.along(1), options.dilation.along(1))};
    std::vector<float> y(static_cast<std::size_t>(shape.product()));
    Context context = Context::cpu(16);
    pool(context, ConstTensorRef(&one, call.x, Extents{0, 0, 0, 0}), TensorRef(y.data(), shape),
         options, {"threads"});
    constexpr std::size_t per_thread = 2 << 20;
    EXPECT_LE(context.workspace_capacity(), 16 * per_thread);
    for (const float value : y) {
      // Padding counts as zeros: five rows of the broadcast kernel overlap the image.
      const float mean =
          options.kind == Pooling::weighted ? 5.0F / static_cast<float>(wide + 1) : 1;
      ASSERT_NEAR(value, mean, 1e-5F * mean);
    }
  }
}

TEST(PoolCpu, InfiniteWeightsInThePaddingAreLeftOut) {
  std::vector<float> x(6, 2.0F);
  std::vector<float> weights = {std::numeric_limits<float>::infinity(), 1, 1};
  std::vector<float> y(6);
  PoolOptions options{.kind = Pooling::weighted,
                      .kernel = {1, 3},
                      .stride = {1, 1},
                      .padding = {0, 1},
                      .count_padding = false};
  options.weights = ConstTensorRef(weights.data(), {1, 3});
  Context context = Context::cpu(2);
  for (const std::string_view rung : {"separable", "threads"}) {
    pool(context, TensorRef(x.data(), {1, 1, 1, 6}), TensorRef(y.data(), {1, 1, 1, 6}), options,
         {rung});
    EXPECT_EQ(y[0], 2.0F) << rung;  // its first tap is in the padding
    EXPECT_TRUE(std::isnan(y[1])) << rung;
  }
}

}  // namespace
}  // namespace rung
