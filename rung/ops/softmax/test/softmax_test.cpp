// SPDX-License-Identifier: Apache-2.0
// Properties of softmax that `rung check` does not test: algebra, errors, aliasing, special values
// in every rung. CPU-only properties are in softmax_cpu_test.cpp.
#include "rung/ops/softmax/op/softmax.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class SoftmaxOn : public OnBackend {
 protected:
  /// Returns "" (the public call) and the rungs that support x -> y.
  std::vector<std::string_view> picks(const ConstTensorRef& x, const TensorRef& y,
                                      const SoftmaxOptions& options) {
    return picks_for<Softmax>(
        {.x = x, .y = y, .axis = options.axis, .scale = options.scale, .log = options.log},
        context);
  }
};

TEST_P(SoftmaxOn, RowsSumToOne) {
  for (const std::int64_t n : {1, 2, 31, 256, 1025}) {
    auto x = random_values(static_cast<std::size_t>(3 * n), 1, 0, 2);
    std::vector<float> y(x.size());
    softmax(context, tensor(x, {3, n}), tensor(y, {3, n}));
    for (std::int64_t row = 0; row < 3; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += y[static_cast<std::size_t>(row * n + i)];
      EXPECT_NEAR(sum, 1.0, 1e-6) << n;
    }
  }
}

TEST_P(SoftmaxOn, ManyShortRowsWithFewLanesEach) {
  if (GetParam() != Backend::simt) return;  // the rung is a CUDA one
  for (const auto [rows, n] : {std::pair{20000, 13}, std::pair{12000, 33}, std::pair{9000, 113}}) {
    auto x = random_values(std::int64_t{rows} * n, 1, 0, 2);
    std::vector<float> y(x.size());
    softmax(context, tensor(x, {rows, n}), tensor(y, {rows, n}), {}, {"short_rows"});
    for (int row = 0; row < rows; ++row) {
      const float* const from = x.data() + std::int64_t{row} * n;
      double sum = 0;
      for (int i = 0; i < n; ++i) sum += std::exp(static_cast<double>(from[i]));
      for (int i = 0; i < n; ++i) {
        ASSERT_NEAR(y[static_cast<std::size_t>(row * n + i)], std::exp(from[i]) / sum, 1e-6)
            << rows << " x " << n << ": " << row << " " << i;
      }
    }
  }
}

TEST_P(SoftmaxOn, AShiftOfTheRowChangesNothing) {
  // A power of two that leaves the differences exact.
  auto x = random_values(500, 2, 0, 2);
  for (float& value : x) value = std::round(value * 256) / 256;
  auto shifted = x;
  for (float& value : shifted) value += 4096;
  std::vector<float> y(500);
  std::vector<float> z(500);
  for (const bool log : {false, true}) {
    softmax(context, tensor(x, {5, 100}), tensor(y, {5, 100}), {.log = log});
    softmax(context, tensor(shifted, {5, 100}), tensor(z, {5, 100}), {.log = log});
    EXPECT_EQ(y, z);
  }
}

TEST_P(SoftmaxOn, LogIsTheLogarithm) {
  auto x = random_values(700, 3, 0, 2);
  std::vector<float> y(700);
  std::vector<float> log(700);
  softmax(context, tensor(x, {7, 100}), tensor(y, {7, 100}), {.scale = 0.5});
  softmax(context, tensor(x, {7, 100}), tensor(log, {7, 100}), {.scale = 0.5, .log = true});
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(std::exp(log[i]), y[i], 1e-5F * y[i]);
  }
}

TEST_P(SoftmaxOn, EveryAxisIsTheLastOneOfAPermutation) {
  auto x = random_values(4 * 6 * 10, 4, 0, 2);
  for (const int axis : {0, 1, 2, -3, -2, -1}) {
    const int from_front = axis < 0 ? axis + 3 : axis;
    std::vector<float> y(x.size());
    softmax(context, tensor(x, {4, 6, 10}), tensor(y, {4, 6, 10}), {.axis = axis});
    TensorRef turned_x = tensor(x, {4, 6, 10});
    std::vector<float> z(x.size());
    TensorRef turned_z = tensor(z, {4, 6, 10});
    for (TensorRef* turned : {&turned_x, &turned_z}) {
      std::swap(turned->shape[from_front], turned->shape[2]);
      std::swap(turned->strides[from_front], turned->strides[2]);
    }
    softmax(context, turned_x, turned_z);
    EXPECT_EQ(y, z) << axis;
  }
}

TEST_P(SoftmaxOn, SpecialValuesComeOutTheSameInEveryRung) {
  // Rows: ordinary with one masked; fully masked; NaN; +infinity; NaN among masked; huge spread.
  constexpr std::int64_t n = 70;
  std::vector<float> x(6 * n, 0.5F);
  const auto row = [&](std::int64_t r) { return x.begin() + r * n; };
  *(row(0) + 69) = -infinity;
  std::fill(row(1), row(2), -infinity);
  *(row(2) + 3) = nan;
  *(row(3) + 68) = infinity;
  std::fill(row(4), row(5), -infinity);
  *(row(4) + 40) = nan;
  std::fill(row(5), row(5) + n, std::numeric_limits<float>::lowest());
  *(row(5) + 1) = std::numeric_limits<float>::max();
  for (const bool log : {false, true}) {
    std::vector<float> y(x.size());
    const SoftmaxOptions options{.log = log};
    for (const std::string_view name : picks(tensor(x, {6, n}), tensor(y, {6, n}), options)) {
      std::fill(y.begin(), y.end(), 7.0F);
      softmax(context, tensor(x, {6, n}), tensor(y, {6, n}), options, {name});
      const float masked = log ? -infinity : 0.0F;
      EXPECT_EQ(y[69], masked) << name;
      EXPECT_NEAR(y[0], log ? -std::log(69.0F) : 1 / 69.0F, 1e-6) << name;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at = [&](std::int64_t r) { return y[static_cast<std::size_t>(r * n + i)]; };
        EXPECT_EQ(at(1), masked) << name << i;
        EXPECT_TRUE(std::isnan(at(2)) && std::isnan(at(3)) && std::isnan(at(4))) << name << i;
        EXPECT_EQ(at(5), i == 1 ? (log ? 0.0F : 1.0F) : masked) << name << i;
      }
    }
  }
}

TEST_P(SoftmaxOn, TheNaiveRungRefusesWhatOverflows) {
  std::vector<float> x{1, 2, 90, 4};
  std::vector<float> y(4);
  const auto names = picks(tensor(x, {1, 4}), tensor(y, {1, 4}), {});
  EXPECT_EQ(std::count(names.begin(), names.end(), "naive"), 0);
  x[2] = 3;
  const auto within = picks(tensor(x, {1, 4}), tensor(y, {1, 4}), {});
  EXPECT_EQ(std::count(within.begin(), within.end(), "naive"), 1);
}

TEST_P(SoftmaxOn, InPlaceGivesTheSameBits) {
  for (const std::int64_t n : {5, 300, 3000}) {
    auto x = random_values(static_cast<std::size_t>(4 * n), 7, 0, 2);
    std::vector<float> y(x.size());
    softmax(context, tensor(x, {4, n}), tensor(y, {4, n}));
    softmax(context, tensor(x, {4, n}), tensor(x, {4, n}));
    EXPECT_EQ(x, y);
  }
}

TEST_P(SoftmaxOn, ErrorsNameWhatWasGiven) {
  std::vector<float> x(24);
  std::vector<float> y(48);
  const auto call = [&](const ConstTensorRef& from, const TensorRef& to, SoftmaxOptions options) {
    return message_of([&] { softmax(context, from, to, options); });
  };
  const TensorRef a = tensor(x, {4, 6});
  expect_text(call(a, tensor(y, {6, 4}), {}), "6x4");
  expect_text(call(a, tensor(y, {4, 6}), {.axis = 2}), "axis");
  expect_text(call(a, tensor(y, {4, 6}), {.axis = -3}), "-3");
  expect_text(call(a, tensor(y, {4, 6}), {.scale = 0}), "scale is 0");
  expect_text(call(a, tensor(y, {4, 6}), {.scale = -1}), "scale");
  expect_text(call(a, tensor(y, {4, 6}), {.scale = 1e300}), "scale");
  expect_text(call({x.data(), DType::f32, Extents{}}, tensor(y, {4, 6}), {}), "no axis");
  expect_text(
      call({static_cast<void*>(x.data()), DType::i32, Extents{4, 6}}, tensor(y, {4, 6}), {}),
      "i32");
  expect_text(call(a, {static_cast<void*>(y.data()), DType::f64, Extents{4, 6}}, {}), "f64");
  expect_text(call(a, {y.data(), DType::f32, Extents{4, 6}, Extents{0, 1}}, {}), "overlap");
  expect_text(call(a, {x.data() + 1, DType::f32, Extents{4, 5}}, {}), "4x5");
  expect_text(call(tensor(y, {4, 6}), {y.data() + 1, DType::f32, Extents{4, 6}}, {}), "overlap");
  expect_text(call({nullptr, DType::f32, Extents{4, 6}}, tensor(y, {4, 6}), {}), "null");
}

TEST_P(SoftmaxOn, EmptyTensorsAreLeftAlone) {
  std::vector<float> y(4, 3.0F);
  softmax(context, {nullptr, DType::f32, Extents{0, 4}}, tensor(y, {0, 4}));
  softmax(context, {nullptr, DType::f32, Extents{4, 0}}, tensor(y, {4, 0}));
  softmax(context, {nullptr, DType::f32, Extents{4, 0}}, tensor(y, {4, 0}), {.axis = 0});
  EXPECT_EQ(y, std::vector<float>(4, 3.0F));
}

TEST_P(SoftmaxOn, ASecondCallWithAnotherAxisIsNotMistakenForTheFirst) {
  auto x = random_values(36, 9, 0, 2);
  std::vector<float> rows(36);
  std::vector<float> columns(36);
  softmax(context, tensor(x, {6, 6}), tensor(rows, {6, 6}), {.axis = 1});
  softmax(context, tensor(x, {6, 6}), tensor(columns, {6, 6}), {.axis = 0});
  EXPECT_NE(rows, columns);
  double sum = 0;
  for (std::size_t i = 0; i < 36; i += 6) sum += columns[i];
  EXPECT_NEAR(sum, 1, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Backends, SoftmaxOn, backends, name_of_backend);

}  // namespace
}  // namespace rung
