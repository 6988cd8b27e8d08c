// SPDX-License-Identifier: Apache-2.0
// Properties of softmax_backward that `rung check` does not test: the derivative, errors, aliasing,
// rungs that are rarely picked, and bitwise repeatability on CPUs.
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class SoftmaxBackwardOn : public OnBackend {
 protected:
  /// Returns "" (the public call) and the rungs that support the arguments.
  std::vector<std::string_view> picks(const ConstTensorRef& y, const ConstTensorRef& dy,
                                      const TensorRef& dx, const SoftmaxOptions& options) {
    return picks_for<SoftmaxBackward>({.y = y,
                                       .dy = dy,
                                       .dx = dx,
                                       .axis = options.axis,
                                       .scale = options.scale,
                                       .log = options.log},
                                      context);
  }
};

TEST_P(SoftmaxBackwardOn, IsTheDerivative) {
  // Compare with the difference quotient of sum dy_i softmax(x)_i.
  constexpr std::int64_t n = 12;
  auto x = random_values(n, 5, 0, 2);
  auto dy = random_values(n, 6, 0, 2);
  for (const bool log : {false, true}) {
    const SoftmaxOptions options{.scale = 0.75, .log = log};
    std::vector<float> y(n);
    std::vector<float> dx(n);
    double sum_of_powers = 0;
    for (std::size_t i = 0; i < n; ++i) sum_of_powers += std::exp(0.75 * x[i]);
    for (std::size_t i = 0; i < n; ++i) {
      const double z = 0.75 * x[i];
      y[i] = static_cast<float>(log ? z - std::log(sum_of_powers) : std::exp(z) / sum_of_powers);
    }
    softmax_backward(context, tensor(y, {1, n}), tensor(dy, {1, n}), tensor(dx, {1, n}), options);
    const auto value = [&](std::size_t changed, double by) {
      double sum = 0;
      double total = 0;
      for (std::size_t i = 0; i < n; ++i) {
        sum += std::exp(0.75 * (x[i] + (i == changed ? by : 0)));
      }
      for (std::size_t i = 0; i < n; ++i) {
        const double z = 0.75 * (x[i] + (i == changed ? by : 0));
        total += dy[i] * (log ? z - std::log(sum) : std::exp(z) / sum);
      }
      return total;
    };
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(dx[i], (value(i, 1e-5) - value(i, -1e-5)) / 2e-5, 1e-5) << i;
    }
  }
}

TEST_P(SoftmaxBackwardOn, GradientsOfMaskedElements) {
  std::vector<float> y{0, 0.25F, 0.75F};
  std::vector<float> log{-infinity, std::log(0.25F), std::log(0.75F)};
  std::vector<float> dy{5, 1, 2};
  std::vector<float> dx(3);
  softmax_backward(context, tensor(y, {3}), tensor(dy, {3}), tensor(dx, {3}));
  EXPECT_EQ(dx[0], 0);
  softmax_backward(context, tensor(log, {3}), tensor(dy, {3}), tensor(dx, {3}), {.log = true});
  EXPECT_EQ(dx[0], 5);
}

TEST_P(SoftmaxBackwardOn, EveryRungAgreesWithTheFormula) {
  // Rows for one lane, part of a warp, and several warps; some are not 16-byte aligned.
  for (const std::int64_t n : {2, 13, 64, 257, 2048}) {
    auto y = random_values(static_cast<std::size_t>(5 * n), 5, 0, 2);
    auto dy = random_values(y.size(), 6, 0, 2);
    std::vector<float> dx(y.size());
    for (const bool log : {false, true}) {
      const SoftmaxOptions options{.scale = 0.5, .log = log};
      const auto names = picks(tensor(y, {5, n}), tensor(dy, {5, n}), tensor(dx, {5, n}), options);
      EXPECT_GE(names.size(), 2U);
      for (const std::string_view name : names) {
        std::fill(dx.begin(), dx.end(), 7.0F);
        softmax_backward(context, tensor(y, {5, n}), tensor(dy, {5, n}), tensor(dx, {5, n}),
                         options, {name});
        for (std::size_t row = 0; row < 5; ++row) {
          const std::size_t first = row * static_cast<std::size_t>(n);
          const std::size_t end = first + static_cast<std::size_t>(n);
          double sum = 0;
          double terms = 0;
          for (std::size_t i = first; i < end; ++i) {
            const double term = log ? dy[i] : static_cast<double>(dy[i]) * y[i];
            sum += term;
            terms += std::abs(term);
          }
          for (std::size_t i = first; i < end; ++i) {
            const double factor = log ? std::exp(static_cast<double>(y[i])) : y[i];
            const double expected =
                log ? 0.5 * (dy[i] - factor * sum) : 0.5 * (dy[i] - sum) * factor;
            ASSERT_NEAR(dx[i], expected, 1e-4 * (1 + std::abs(factor)) * (1 + terms))
                << name << ": " << n << " " << i << " " << log;
          }
        }
      }
    }
  }
}

TEST_P(SoftmaxBackwardOn, InPlaceGivesTheSameBits) {
  for (const std::int64_t n : {5, 300, 3000}) {
    auto y = random_values(static_cast<std::size_t>(4 * n), 7, 0, 2);
    auto dy = random_values(y.size(), 8, 0, 2);
    std::vector<float> dx(y.size());
    softmax_backward(context, tensor(y, {4, n}), tensor(dy, {4, n}), tensor(dx, {4, n}));
    auto over_y = y;
    softmax_backward(context, tensor(over_y, {4, n}), tensor(dy, {4, n}), tensor(over_y, {4, n}));
    EXPECT_EQ(over_y, dx);
    softmax_backward(context, tensor(y, {4, n}), tensor(dy, {4, n}), tensor(dy, {4, n}));
    EXPECT_EQ(dy, dx);
  }
}

TEST_P(SoftmaxBackwardOn, ErrorsNameTheOperatorAndWhatWasGiven) {
  std::vector<float> y(24);
  std::vector<float> dy(24);
  std::vector<float> dx(48);
  const TensorRef a = tensor(y, {4, 6});
  const TensorRef b = tensor(dy, {4, 6});
  const TensorRef c = tensor(dx, {4, 6});
  const auto call = [&](const ConstTensorRef& of_y, const ConstTensorRef& of_dy,
                        const TensorRef& to, SoftmaxOptions options) {
    return message_of([&] { softmax_backward(context, of_y, of_dy, to, options); });
  };
  expect_text(call(a, tensor(dy, {6, 4}), c, {}), "softmax_backward: dy is 6x4");
  expect_text(call(a, b, tensor(dx, {6, 4}), {}), "softmax_backward: dx is 6x4");
  expect_text(call(a, {static_cast<void*>(dy.data()), DType::f16, Extents{4, 6}}, c, {}), "dy");
  expect_text(call(a, b, {static_cast<void*>(dx.data()), DType::f64, Extents{4, 6}}, {}),
              "y is f32 and dx f64");
  expect_text(call(a, b, c, {.axis = 2}), "axis");
  expect_text(call(a, b, c, {.scale = -1}), "scale is -1");
  expect_text(call({y.data(), DType::f32, Extents{}}, b, c, {}), "y has no axis");
  expect_text(call(a, b, {dx.data(), DType::f32, Extents{4, 6}, Extents{0, 1}}, {}), "overlap");
  expect_text(call(a, tensor(dx, {4, 6}), {dx.data() + 1, DType::f32, Extents{4, 6}}, {}),
              "overlap");
}

TEST_P(SoftmaxBackwardOn, EmptyTensorsAreLeftAlone) {
  std::vector<float> dx(4, 3.0F);
  const ConstTensorRef none{nullptr, DType::f32, Extents{4, 0}};
  softmax_backward(context, none, none, tensor(dx, {4, 0}));
  softmax_backward(context, none, none, tensor(dx, {4, 0}), {.axis = 0});
  EXPECT_EQ(dx, std::vector<float>(4, 3.0F));
}

INSTANTIATE_TEST_SUITE_P(Backends, SoftmaxBackwardOn, backends, name_of_backend);

TEST(SoftmaxBackwardThreads, AnyNumberOfThemGivesTheSameBits) {
  struct Case {
    std::int64_t rows, length;
    int axis;
  };
  // Rows, columns, and rows long enough to be split over threads.
  for (const Case& c : {Case{300, 700, 1}, Case{700, 300, 0}, Case{2, 200001, 1}}) {
    auto y = random_values(static_cast<std::size_t>(c.rows * c.length), 10, 0, 2);
    auto dy = random_values(y.size(), 11, 0, 2);
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 5}) {
      Context context = Context::cpu(threads);
      std::vector<float> dx(y.size());
      softmax_backward(context, tensor(y, {c.rows, c.length}), tensor(dy, {c.rows, c.length}),
                       tensor(dx, {c.rows, c.length}), {.axis = c.axis},
                       {c.axis == 0 ? "row_per_lane" : "threads"});
      if (threads == 1) first = dx;
      EXPECT_EQ(std::memcmp(dx.data(), first.data(), dx.size() * sizeof(float)), 0) << threads;
    }
  }
}

/// The row pipeline, with non-temporal or ordinary stores, gives the bits of each row computed
/// alone, for any alignment of dx and any neighboring rows.
TEST(SoftmaxBackwardPipeline, GivesTheBitsOfOneRowAtATime) {
  constexpr std::int64_t elements = 4 << 20;  // with dy and dx, more than 32 MiB
  for (const std::int64_t length : {63, 131, 256, 1025, 1536, 4099, 20001}) {
    const std::int64_t rows = elements / length;
    auto y = random_values(static_cast<std::size_t>(rows * length), 12, 0, 2);
    auto dy = random_values(y.size(), 13, 0, 2);
    y[0] = infinity;  // rows with an infinity, of zeros, and with a NaN
    std::fill_n(y.begin() + 2 * length, length, 0.0F);
    y[static_cast<std::size_t>(5 * length - 1)] = nan;
    const auto row_of = [&](std::vector<float>& values, std::int64_t row) {
      return TensorRef{values.data() + row * length, DType::f32, Extents{1, length}};
    };
    std::vector<float> alone(y.size());
    Context one = Context::cpu(1);
    for (std::int64_t row = 0; row < rows; ++row) {
      softmax_backward(one, row_of(y, row), row_of(dy, row), row_of(alone, row), {}, {"threads"});
    }
    std::vector<float> dx(y.size() + 1);
    const TensorRef out{dx.data() + 1, DType::f32, Extents{rows, length}};
    for (const int threads : {1, 3}) {
      Context context = Context::cpu(threads);
      const auto expect_same = [&](const void* found, const char* what) {
        EXPECT_EQ(std::memcmp(found, alone.data(), alone.size() * sizeof(float)), 0)
            << what << ", rows of " << length << ", " << threads << " threads";
      };
      auto in_place = dy;
      softmax_backward(context, tensor(y, {rows, length}), tensor(in_place, {rows, length}),
                       tensor(in_place, {rows, length}), {}, {"threads"});
      expect_same(in_place.data(), "in place");
      softmax_backward(context, tensor(y, {rows, length}), tensor(dy, {rows, length}), out, {},
                       {"threads"});
      expect_same(out.data, "out of place");
    }
  }
}

}  // namespace
}  // namespace rung
