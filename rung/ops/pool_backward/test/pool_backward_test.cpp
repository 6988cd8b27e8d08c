// SPDX-License-Identifier: Apache-2.0
// Properties of pool_backward that `rung check` does not cover: it is the derivative of pool, in
// every rung and layout; the positions of gradients; errors.
#include "rung/ops/pool_backward/op/pool_backward.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

/// Returns values a tenth apart in random order, none of them near 0: a small step changes no
/// maximum, and no norm is small.
std::vector<float> distinct_values(std::int64_t count, unsigned seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = 0.1F * (static_cast<float>(i) - 0.5F * static_cast<float>(count));
    values[i] = value < 0 ? value - 0.5F : value + 0.5F;
  }
  std::shuffle(values.begin(), values.end(), std::mt19937(seed));
  return values;
}

/// Returns options that combine features: 3 x 3, stride 2, padding 1, a partial window at the end.
PoolOptions windows(Pooling kind) {
  return {.kind = kind,
          .kernel = 3,
          .stride = 2,
          .padding = 1,
          .ceil_mode = true,
          .count_padding = false};
}
PoolBackwardOptions backward_of(const PoolOptions& o) {
  return {.kind = o.kind,
          .kernel = o.kernel,
          .stride = o.stride,
          .padding = o.padding,
          .dilation = o.dilation,
          .ceil_mode = o.ceil_mode,
          .count_padding = o.count_padding,
          .channels_last = o.channels_last,
          .indices = o.indices,
          .weights = o.weights};
}

class PoolBackwardOn : public OnBackend {
 protected:
  static constexpr std::int64_t channels = 2, in = 8, out = 5;
  static constexpr std::int64_t size = channels * in * in, results = channels * out * out;

  Extents image{1, channels, in, in};
  Extents pooled{1, channels, out, out};
  std::vector<float> x = distinct_values(size, 1);
  std::vector<float> dy = random_values(results, 2, 0, 2);
  std::vector<float> y = std::vector<float>(static_cast<std::size_t>(results));
  std::vector<float> weights{1, 2, 1, 2, 4, 2, 1, 2, 3};
  std::vector<std::int64_t> indices = std::vector<std::int64_t>(static_cast<std::size_t>(results));

  PoolOptions options_of(Pooling kind) {
    PoolOptions options = windows(kind);
    if (kind == Pooling::weighted) options.weights = ConstTensorRef(weights, {3, 3});
    if (kind == Pooling::max) options.indices = TensorRef(indices.data(), pooled);
    return options;
  }

  /// Returns the sum of dy times pool(x), in double.
  double loss(const PoolOptions& options) {
    std::vector<float> made(static_cast<std::size_t>(results));
    Context host = Context::cpu(1);
    pool(host, TensorRef(x.data(), image), TensorRef(made.data(), pooled), options);
    double sum = 0;
    for (std::size_t i = 0; i < made.size(); ++i) sum += double{made[i]} * dy[i];
    return sum;
  }
};

TEST_P(PoolBackwardOn, IsTheDerivative) {
  for (const Pooling kind : {Pooling::max, Pooling::average, Pooling::l2, Pooling::weighted}) {
    const PoolOptions options = options_of(kind);
    pool(context, TensorRef(x.data(), image), TensorRef(y.data(), pooled), options);
    PoolBackwardOptions backward = backward_of(options);
    const auto x_before = x;
    if (kind == Pooling::l2) {
      backward.x = ConstTensorRef(x_before, image);
      backward.y = ConstTensorRef(y.data(), pooled);
    }
    std::vector<float> dx(static_cast<std::size_t>(size));
    const TensorRef to(dx.data(), image);
    const ConstTensorRef from(dy.data(), pooled);
    const auto saved = indices;  // loss() overwrites them
    std::vector<double> wanted;
    for (float& value : x) {
      const float before = value;
      constexpr float step = 1.0F / 64;
      value = before + step;
      const double above = loss(options);
      value = before - step;
      wanted.push_back((above - loss(options)) / (2 * step));
      value = before;
    }
    indices = saved;
    for (const std::string_view name :
         picks_for<PoolBackward>({.dy = from, .dx = to, .options = backward}, context)) {
      std::fill(dx.begin(), dx.end(), -77.0F);
      pool_backward(context, from, to, backward, {name});
      for (std::size_t i = 0; i < dx.size(); ++i) {
        // The norm is nonlinear: the finite difference is off by step^2 times a third derivative.
        ASSERT_NEAR(dx[i], wanted[i], kind == Pooling::l2 ? 1e-2 : 1e-3)
            << name << " kind " << static_cast<int>(kind) << ' ' << i;
      }
    }
  }
}

TEST_P(PoolBackwardOn, EachGradientGoesToItsMaximum) {
  // Windows that do not overlap: dx has dy at the maxima, and zeros elsewhere.
  std::vector<float> image_values(64);
  for (std::size_t i = 0; i < 64; ++i) image_values[i] = static_cast<float>(i * 29 % 64);
  std::vector<float> tops(16);
  std::vector<std::int32_t> places(16);
  PoolOptions options{.kernel = 2};
  options.indices = TensorRef(places.data(), {1, 1, 4, 4});
  pool(context, TensorRef(image_values.data(), {1, 1, 8, 8}), TensorRef(tops.data(), {1, 1, 4, 4}),
       options);
  const TensorRef from(tops.data(), {1, 1, 4, 4});
  std::vector<float> dx(64);
  const TensorRef to(dx.data(), {1, 1, 8, 8});
  const PoolBackwardOptions backward = backward_of(options);
  for (const std::string_view name :
       picks_for<PoolBackward>({.dy = from, .dx = to, .options = backward}, context)) {
    std::fill(dx.begin(), dx.end(), -77.0F);
    pool_backward(context, from, to, backward, {name});
    std::size_t set = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      const bool top = std::find(tops.begin(), tops.end(), image_values[i]) != tops.end();
      EXPECT_EQ(dx[i], top ? image_values[i] : 0.0F) << name << ' ' << i;
      set += top ? 1 : 0;
    }
    EXPECT_EQ(set, 16U);
  }
}

TEST_P(PoolBackwardOn, AnIndexOutsideOfItsWindowCountsForNothing) {
  std::vector<std::int64_t> places{-1, 3, 12, 1000};  // of 2 x 2 windows over 4 x 4
  std::vector<float> gradients{1, 1, 1, 1};
  std::vector<float> dx(16);
  PoolBackwardOptions options{.kernel = 2};
  options.indices = ConstTensorRef(places, {1, 1, 2, 2});
  const ConstTensorRef from(gradients, {1, 1, 2, 2});
  const TensorRef to(dx, {1, 1, 4, 4});
  for (const std::string_view name :
       picks_for<PoolBackward>({.dy = from, .dx = to, .options = options}, context)) {
    std::fill(dx.begin(), dx.end(), -77.0F);
    pool_backward(context, from, to, options, {name});
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(dx[i], i == 3 || i == 12 ? 1.0F : 0.0F) << name << ' ' << i;
    }
  }
  places = {15, 0, 5, 8};  // each in another window
  pool_backward(context, from, to, options);
  EXPECT_EQ(dx[15] + dx[0] + dx[5], 0.0F);
}

TEST_P(PoolBackwardOn, ChannelsLastIsTheSameNumbers) {
  constexpr std::int64_t many = 19;
  auto gradients = random_values(many * out * out, 3, 0, 2);
  auto image_values = random_values(many * in * in, 4, 0, 2);
  const auto turned = [](const std::vector<float>& from, std::int64_t pixels) {
    std::vector<float> to(from.size());
    for (std::int64_t i = 0; i < many * pixels; ++i) {
      to[static_cast<std::size_t>(i % pixels * many + i / pixels)] =
          from[static_cast<std::size_t>(i)];
    }
    return to;
  };
  for (const Pooling kind : {Pooling::average, Pooling::l2, Pooling::weighted}) {
    PoolBackwardOptions options = backward_of(options_of(kind));
    std::vector<float> norms(gradients.size(), 3.0F);
    if (kind == Pooling::l2) {
      options.x = ConstTensorRef(image_values, {1, many, in, in});
      options.y = ConstTensorRef(norms, {1, many, out, out});
    }
    std::vector<float> dx(image_values.size());
    pool_backward(context, ConstTensorRef(gradients, {1, many, out, out}),
                  TensorRef(dx, {1, many, in, in}), options);
    const auto x_last = turned(image_values, in * in);
    const auto dy_last = turned(gradients, out * out);
    std::vector<float> dx_last(dx.size());
    options.channels_last = true;
    if (kind == Pooling::l2) {
      options.x = ConstTensorRef(x_last, {1, in, in, many});
      options.y = ConstTensorRef(norms, {1, out, out, many});
    }
    pool_backward(context, ConstTensorRef(dy_last, {1, out, out, many}),
                  TensorRef(dx_last, {1, in, in, many}), options);
    const auto wanted = turned(dx, in * in);
    for (std::size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(dx_last[i], wanted[i], 1e-5) << i;
  }
}

TEST_P(PoolBackwardOn, ErrorsNameWhatWasGiven) {
  std::vector<float> dx(static_cast<std::size_t>(size));
  const ConstTensorRef from(dy.data(), pooled);
  const TensorRef to(dx.data(), image);
  const auto expect = [&](const PoolBackwardOptions& options, const std::string& words) {
    expect_text(message_of([&] { pool_backward(context, from, to, options); }), words);
  };
  PoolBackwardOptions right = backward_of(options_of(Pooling::max));
  pool_backward(context, from, to, right);
  PoolBackwardOptions wrong = right;
  wrong.indices = {};
  expect(wrong, "indices is left out; accepted: given where kind is max");
  wrong = right;
  wrong.x = ConstTensorRef(x, image);
  expect(wrong, "x is given; accepted: left out, unless where kind is l2");
  wrong = right;
  wrong.kind = Pooling::weighted;
  expect(wrong, "indices is given");
  wrong = right;
  wrong.ceil_mode = false;
  expect(wrong, "dy");
  wrong = right;
  wrong.indices = ConstTensorRef(y, pooled);
  expect(wrong, "indices is f32");
  const std::string overlap = message_of([&] {
    PoolBackwardOptions average = backward_of(options_of(Pooling::average));
    pool_backward(context, ConstTensorRef(dx.data(), pooled), to, average);
  });
  expect_text(overlap, "overlap");
}

INSTANTIATE_TEST_SUITE_P(Backends, PoolBackwardOn, backends, name_of_backend);

TEST(PoolBackwardCpu, AnyNumberOfThreadsGivesTheSameBits) {
  auto dy = random_values(3 * 5 * 31 * 39, 5, 0, 2);
  PoolBackwardOptions options = backward_of(windows(Pooling::average));
  options.ceil_mode = false;
  std::vector<float> one;
  for (const int threads : {1, 2, 3, 7}) {
    Context context = Context::cpu(threads);
    std::vector<float> dx(3 * 5 * 61 * 77);
    pool_backward(context, ConstTensorRef(dy, {3, 5, 31, 39}), TensorRef(dx, {3, 5, 61, 77}),
                  options);
    if (threads == 1) one = dx;
    EXPECT_EQ(dx, one) << threads;
  }
}

}  // namespace
}  // namespace rung
