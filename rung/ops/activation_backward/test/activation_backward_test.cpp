// SPDX-License-Identifier: Apache-2.0
// Properties of activation_backward that `rung check` does not cover: agreement with derivatives of
// the functions' formulas, in every rung; special values; layouts; errors.
#include "rung/ops/activation_backward/op/activation_backward.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

constexpr ActivationFunction functions[] = {ActivationFunction::sign, ActivationFunction::sigmoid,
                                            ActivationFunction::tanh, ActivationFunction::relu,
                                            ActivationFunction::gelu, ActivationFunction::silu};

/// Returns the function whose gradient is tested; for sign, its surrogate.
double value_of(ActivationFunction function, double x) {
  switch (function) {
    case ActivationFunction::sign:
      return std::clamp(x, -1.0, 1.0);
    case ActivationFunction::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationFunction::tanh:
      return std::tanh(x);
    case ActivationFunction::relu:
      return std::max(x, 0.0);
    case ActivationFunction::gelu:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case ActivationFunction::silu:
      return x / (1 + std::exp(-x));
  }
  return 0;
}
bool saves_y(ActivationFunction function) {
  return function == ActivationFunction::sigmoid || function == ActivationFunction::tanh;
}

class ActivationBackwardOn : public OnBackend {};

TEST_P(ActivationBackwardOn, IsTheDerivative) {
  for (const ActivationFunction function : functions) {
    std::vector<double> saved;
    std::vector<double> dy;
    std::vector<double> wanted;
    for (double x = -6.03; x < 6; x += 0.17) {  // avoids the kinks
      constexpr double step = 1e-6;
      saved.push_back(saves_y(function) ? value_of(function, x) : x);
      dy.push_back(1.5 - x);
      wanted.push_back(dy.back() * (value_of(function, x + step) - value_of(function, x - step)) /
                       (2 * step));
    }
    std::vector<double> dx(saved.size());
    const ActivationBackward::Call call{saved, dy, dx, function};
    for (const std::string_view name : picks_for<ActivationBackward>(call, context)) {
      std::fill(dx.begin(), dx.end(), -77);
      activation_backward(context, saved, dy, dx, {function}, {name});
      for (std::size_t i = 0; i < dx.size(); ++i) {
        ASSERT_NEAR(dx[i], wanted[i], 1e-8) << to_string(function) << ' ' << name << ' ' << i;
      }
    }
  }
}

TEST_P(ActivationBackwardOn, SpecialValues) {
  const std::vector<float> saved{nan, infinity, -infinity, 1e30F, -1e30F, 0, 1, -1};
  const std::vector<float> dy(8, 2.0F);
  const auto expect = [&](ActivationFunction function, const std::vector<float>& wanted) {
    std::vector<float> dx(8);
    for (const std::string_view name :
         picks_for<ActivationBackward>({saved, dy, dx, function}, context)) {
      activation_backward(context, saved, dy, dx, {function}, {name});
      EXPECT_TRUE(std::isnan(dx[0])) << to_string(function) << ' ' << name;
      for (std::size_t i = 1; i < wanted.size(); ++i) {
        EXPECT_NEAR(dx[i], wanted[i], 1e-6) << to_string(function) << ' ' << name << ' ' << i;
      }
    }
  };
  expect(ActivationFunction::relu, {nan, 2, 0, 2, 0, 0, 2, 0});
  expect(ActivationFunction::sign, {nan, 0, 0, 0, 0, 2, 2, 2});
  expect(ActivationFunction::gelu, {nan, 2, 0, 2, 0, 1, 2.1666309F, -0.16663091F});
  expect(ActivationFunction::silu, {nan, 2, 0, 2, 0, 1, 1.8553411F, 0.14465892F});
}

// relu and sign select dy, so that 0 stays 0; the other functions multiply it.
TEST_P(ActivationBackwardOn, SpecialGradientsAreSelectedOrMultiplied) {
  // Enough for several vectors and a remainder.
  constexpr std::size_t repeats = 9;
  const auto repeated = [&](const std::vector<float>& values) {
    std::vector<float> all;
    for (std::size_t i = 0; i < repeats; ++i) all.insert(all.end(), values.begin(), values.end());
    return all;
  };
  const auto expect = [&](ActivationFunction function, const std::vector<float>& saved_once,
                          const std::vector<float>& dy_once, const std::vector<float>& wanted) {
    const std::vector<float> saved = repeated(saved_once);
    const std::vector<float> dy = repeated(dy_once);
    std::vector<float> dx(dy.size());
    for (const std::string_view name :
         picks_for<ActivationBackward>({saved, dy, dx, function}, context)) {
      std::fill(dx.begin(), dx.end(), -77.0F);
      activation_backward(context, saved, dy, dx, {function}, {name});
      for (std::size_t i = 0; i < dx.size(); ++i) {
        const float want = wanted[i % wanted.size()];
        EXPECT_TRUE(std::isnan(want) ? std::isnan(dx[i]) : dx[i] == want)
            << to_string(function) << ' ' << name << ' ' << i << ": " << dx[i] << ", not " << want;
      }
    }
  };
  const float inf = infinity;
  const std::vector<float> dy{nan, inf, -inf, nan, inf, -inf, nan, inf, 1};
  expect(ActivationFunction::relu, {-1, -1, 0, 2, 2, 2, nan, nan, nan}, dy,
         {0, 0, 0, nan, inf, -inf, nan, nan, nan});
  expect(ActivationFunction::sign, {-2, 2, inf, 1, -1, 0, nan, nan, nan}, dy,
         {0, 0, 0, nan, inf, -inf, nan, nan, nan});
  expect(ActivationFunction::sigmoid, {1, 1, 0, 0.5F, 0.5F, 0.5F, nan, nan, nan}, dy,
         {nan, nan, nan, nan, inf, -inf, nan, nan, nan});
  expect(ActivationFunction::tanh, {1, 1, -1, 0.5F, 0.5F, 0.5F, nan, nan, nan}, dy,
         {nan, nan, nan, nan, inf, -inf, nan, nan, nan});
  for (const ActivationFunction function : {ActivationFunction::gelu, ActivationFunction::silu}) {
    expect(function, {-inf, -inf, -inf, inf, inf, 1, nan, nan, nan}, dy,
           {nan, nan, nan, nan, inf, -inf, nan, nan, nan});
  }
}

TEST_P(ActivationBackwardOn, ALayoutChangesNoBit) {
  constexpr std::int64_t rows = 13, columns = 37;
  std::vector<float> saved(rows * columns);
  std::vector<float> dy(saved.size());
  for (std::size_t i = 0; i < saved.size(); ++i) {
    saved[i] = std::sin(0.7F * static_cast<float>(i)) * 5;
    dy[i] = std::cos(0.3F * static_cast<float>(i));
  }
  std::vector<float> turned(saved.size());
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    turned[static_cast<std::size_t>(i % columns * rows + i / columns)] =
        saved[static_cast<std::size_t>(i)];
  }
  for (const ActivationFunction function : functions) {
    std::vector<float> flat(saved.size());
    std::vector<float> made(saved.size());
    const Extents shape{rows, columns};
    activation_backward(context, ConstTensorRef(saved, shape), ConstTensorRef(dy, shape),
                        TensorRef(flat, shape), {function});
    activation_backward(context, ConstTensorRef(turned, shape, {1, rows}),
                        ConstTensorRef(dy, shape), TensorRef(made, shape), {function});
    if (GetParam() == Backend::cpu) {
      EXPECT_EQ(made, flat) << to_string(function);
    }
    for (std::size_t i = 0; i < made.size(); ++i) ASSERT_NEAR(made[i], flat[i], 1e-6) << i;
    std::vector<float> over = dy;  // in place
    activation_backward(context, ConstTensorRef(saved, shape), TensorRef(over, shape),
                        TensorRef(over, shape), {function});
    EXPECT_EQ(over, flat) << to_string(function);
  }
}

TEST_P(ActivationBackwardOn, ErrorsNameWhatWasGiven) {
  std::vector<float> a(6);
  std::vector<float> b(6);
  std::vector<double> c(6);
  const auto message = [&](const ConstTensorRef& saved, const ConstTensorRef& dy,
                           const TensorRef& dx) {
    return message_of([&] { activation_backward(context, saved, dy, dx); });
  };
  expect_text(message(a, ConstTensorRef(b, {2, 3}), b), "dy");
  expect_text(message(a, c, b), "dy is f64");
  expect_text(message(a, b, c), "dx is f64");
  expect_text(message(ConstTensorRef(a.data(), {5}), ConstTensorRef(b.data(), {5}),
                      TensorRef(a.data() + 1, {5})),
              "overlap");
}

INSTANTIATE_TEST_SUITE_P(Backends, ActivationBackwardOn, backends, name_of_backend);

TEST(ActivationBackwardCpu, AnyNumberOfThreadsGivesTheSameBits) {
  std::vector<float> saved(100003);
  std::vector<float> dy(saved.size(), 1.0F);
  for (std::size_t i = 0; i < saved.size(); ++i) saved[i] = 1e-4F * static_cast<float>(i) - 5;
  std::vector<float> dx(saved.size());
  Context alone = Context::cpu(1);
  for (const ActivationFunction function : functions) {
    for (const std::string_view name :
         picks_for<ActivationBackward>({saved, dy, dx, function}, alone)) {
      std::vector<float> one;
      for (const int threads : {1, 2, 3, 7, 16}) {
        Context context = Context::cpu(threads);
        std::fill(dx.begin(), dx.end(), -77.0F);
        activation_backward(context, saved, dy, dx, {function}, {name});
        if (threads == 1) one = dx;
        EXPECT_EQ(dx, one) << to_string(function) << ' ' << name << ' ' << threads;
      }
    }
  }
}

}  // namespace
}  // namespace rung
