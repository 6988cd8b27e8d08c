// SPDX-License-Identifier: Apache-2.0
// transform.cuh: user-defined functors, on the CPU and on the simulated GPU.
#define RUNG_SIMT 1
#pragma GCC diagnostic ignored "-Wunknown-pragmas"  // nvcc's "#pragma unroll"
#include "rung/ops/elementwise/transform.cuh"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class TransformOn : public OnBackend {};
INSTANTIATE_TEST_SUITE_P(Backends, TransformOn, backends, name_of_backend);

struct Blend {
  float share;
  __host__ __device__ float operator()(float x, float y) const { return x + share * (y - x); }
};

template <class T>
View<T, 2> matrix(std::vector<T>& values, std::int64_t rows, std::int64_t columns) {
  return {values.data(), {rows, columns}, {columns, 1}};
}
template <class T>
View<const T, 2> read(const View<T, 2>& view) {
  return view;
}

std::vector<float> counting(std::size_t count, float first) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i % 251);
  return values;
}

TEST_P(TransformOn, FunctorWithStateAndBroadcasting) {
  // Rows of whole packs and others; more than one thread's share.
  for (const std::int64_t columns : {64, 67, 300}) {
    const std::int64_t rows = 73;
    auto x = counting(static_cast<std::size_t>(rows * columns), 1);
    auto y = counting(static_cast<std::size_t>(columns), 100);
    std::vector<float> z(x.size(), -1);
    const View<const float, 1> row{y.data(), {columns}, {1}};
    transform(context, Blend{0.25F}, matrix(z, rows, columns), read(matrix(x, rows, columns)), row);
    for (std::size_t i = 0; i < z.size(); ++i) {
      ASSERT_EQ(z[i], Blend{0.25F}(x[i], y[i % static_cast<std::size_t>(columns)])) << i;
    }
  }
}

struct Scale {
  __host__ __device__ double operator()(float x, std::int32_t y) const {
    return static_cast<double>(x) * y;
  }
};

TEST_P(TransformOn, ElementTypesOfTheirOwn) {
  const std::size_t count = 1000;
  std::vector<f16> x(count);
  std::vector<std::int32_t> y(count);
  std::vector<double> z(count);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = f16(0.5F * static_cast<float>(i % 100));
    y[i] = static_cast<std::int32_t>(i) - 500;
  }
  transform(context, Scale{}, matrix(z, 10, 100), read(matrix(x, 10, 100)),
            read(matrix(y, 10, 100)));
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(z[i], 0.5 * static_cast<double>(i % 100) * (static_cast<double>(i) - 500)) << i;
  }
}

struct Largest {
  __host__ __device__ std::int64_t operator()(std::int64_t x, std::int64_t y,
                                              std::int64_t w) const {
    const std::int64_t larger = x > y ? x : y;
    return larger > w ? larger : w;
  }
};

TEST_P(TransformOn, ThreeInputsTransposedAndInPlace) {
  const std::int64_t n = 20;
  std::vector<std::int64_t> x(n * n);
  std::vector<std::int64_t> w(n * n);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<std::int64_t>(i * 7919 % 1000);
    w[i] = static_cast<std::int64_t>(i * 104729 % 1000);
  }
  const std::vector<std::int64_t> before = w;
  const View<const std::int64_t, 2> across{x.data(), {n, n}, {1, n}};
  transform(context, Largest{}, matrix(w, n, n), read(matrix(x, n, n)), across,
            read(matrix(w, n, n)));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t mirrored = i % n * n + i / n;
    ASSERT_EQ(w[i], Largest{}(x[i], x[mirrored], before[i])) << i;
  }
}

TEST_P(TransformOn, ErrorsNameTheInput) {
  auto x = counting(60, 0);
  std::vector<float> z(60);
  std::string text = message_of([&] {
    transform(context, Blend{}, matrix(z, 6, 10), read(matrix(x, 6, 10)), read(matrix(x, 5, 10)));
  });
  expect_text(text, "input 2 is 5x10");
  const View<float, 2> shifted{x.data() + 1, {5, 10}, {10, 1}};
  text = message_of([&] {
    transform(context, Blend{}, shifted, read(matrix(x, 5, 10)), read(matrix(x, 5, 10)));
  });
  expect_text(text, "input 1");
}

}  // namespace
}  // namespace rung
