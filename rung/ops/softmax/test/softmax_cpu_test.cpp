// SPDX-License-Identifier: Apache-2.0
// softmax on a CPU: bitwise equality for any number of threads, accuracy of the exponential.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "rung/cpu/isa.hpp"
#include "rung/ops/softmax/op/softmax.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

TEST(SoftmaxThreads, AnyNumberOfThemGivesTheSameBits) {
  struct Case {
    std::int64_t rows, length;
    int axis;
  };
  // Rows, columns, and rows long enough to be split over threads.
  for (const Case& c : {Case{300, 700, 1}, Case{700, 300, 0}, Case{2, 200001, 1}}) {
    auto x = random_values(static_cast<std::size_t>(c.rows * c.length), 10, 0, 2);
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 5}) {
      Context context = Context::cpu(threads);
      std::vector<float> y(x.size());
      softmax(context, tensor(x, {c.rows, c.length}), tensor(y, {c.rows, c.length}),
              {.axis = c.axis}, {c.axis == 0 ? "row_per_lane" : "threads"});
      if (threads == 1) first = y;
      EXPECT_EQ(std::memcmp(y.data(), first.data(), y.size() * sizeof(float)), 0) << threads;
    }
  }
}

/// The row pipeline, with non-temporal or ordinary stores, gives the bits of each row computed
/// alone, for any alignment of y and any neighboring rows.
TEST(SoftmaxInTurns, GivesTheBitsOfOneRowAtATime) {
  constexpr std::int64_t elements = 5 << 20;  // with the result, more than 32 MiB
  for (const std::int64_t length : {63, 131, 256, 1025, 1536, 4099, 20001}) {
    const std::int64_t rows = elements / length;
    auto x = random_values(static_cast<std::size_t>(rows * length), 12, 0, 2);
    x[0] = infinity;  // rows with one infinity, fully masked, and with a NaN
    std::fill_n(x.begin() + 2 * length, length, -infinity);
    x[static_cast<std::size_t>(5 * length - 1)] = nan;
    // Reference: each row alone, on one thread.
    const auto row_of = [&](std::vector<float>& values, std::int64_t row) {
      return TensorRef{values.data() + row * length, DType::f32, Extents{1, length}};
    };
    std::vector<float> alone(x.size());
    std::vector<float> alone_log(x.size());
    Context one = Context::cpu(1);
    for (std::int64_t row = 0; row < rows; ++row) {
      softmax(one, row_of(x, row), row_of(alone, row), {}, {"threads"});
      softmax(one, row_of(x, row), row_of(alone_log, row), {.log = true}, {"threads"});
    }
    std::vector<float> y(x.size() + 1);
    const TensorRef out{y.data() + 1, DType::f32, Extents{rows, length}};
    for (const int threads : {1, 3}) {
      Context context = Context::cpu(threads);
      const auto expect_same = [&](const void* found, const std::vector<float>& expected,
                                   const char* what) {
        EXPECT_EQ(std::memcmp(found, expected.data(), expected.size() * sizeof(float)), 0)
            << what << ", rows of " << length << ", " << threads << " threads";
      };
      for (const bool log : {false, true}) {
        const std::vector<float>& expected = log ? alone_log : alone;
        auto in_place = x;
        softmax(context, tensor(in_place, {rows, length}), tensor(in_place, {rows, length}),
                {.log = log}, {"threads"});
        expect_same(in_place.data(), expected, log ? "log, in place" : "softmax, in place");
        softmax(context, tensor(x, {rows, length}), out, {.log = log}, {"threads"});
        expect_same(out.data, expected, log ? "log" : "softmax");
      }
    }
  }
}

TEST(SoftmaxExponential, IsWithinTwoUnitsInTheLastPlace) {
  // The sum of pairs (0, z) with z below -17 rounds to 1, so y is the exponential. Its argument, z
  // log2(e) in f32, is not corrected: the contract's term 8 |z| u covers its rounding.
  Context context = Context::cpu(1);
  constexpr std::int64_t count = 100000;
  std::vector<float> x(2 * count);
  std::vector<float> y(2 * count);
  for (std::int64_t i = 0; i < count; ++i) {
    x[static_cast<std::size_t>(2 * i + 1)] = -17.5F - 69.0F * static_cast<float>(i) / count;
  }
  softmax(context, tensor(x, {count, 2}), tensor(y, {count, 2}), {}, {"row_pipeline"});
  double worst = 0;
  for (std::size_t i = 1; i < x.size(); i += 2) {
    const float argument = x[i] * 1.44269504F;
    const double exact = std::exp2(static_cast<double>(argument));
    const double units = std::abs(y[i] - exact) / (std::exp2(std::floor(argument)) * 0x1p-23);
    worst = std::max(worst, units);
  }
  // Without fused multiply-add, each step of the polynomial rounds twice.
  EXPECT_LT(worst, cpu::isa() == cpu::Isa::scalar ? 2.2 : 2.0);
}

}  // namespace
}  // namespace rung
