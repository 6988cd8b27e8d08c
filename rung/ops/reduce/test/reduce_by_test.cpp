// SPDX-License-Identifier: Apache-2.0
// reduce_by's kernels on the simulated GPU, where it is built (tests.cmake).
#include "rung/ops/reduce/reduce.cuh"

#include <cmath>
#include <limits>

#include "rung/ops/reduce/test/reduce_test.hpp"

#if defined(RUNG_SIMT)
namespace rung {
namespace {

using namespace reduce_test;

/// x -> slope x + shift; composition does not commute.
struct Line {
  std::int32_t slope;
  std::int32_t shift;
  bool operator==(const Line&) const = default;
};
struct Compose {
  RUNG_HD Line operator()(const Line& a, const Line& b) const {
    return {a.slope * b.slope, a.shift * b.slope + b.shift};
  }
};
struct ToLine {
  RUNG_HD Line operator()(std::int32_t v) const { return v % 2 == 0 ? Line{1, v} : Line{-1, v}; }
};

/// The first of the least, a NaN before all numbers.
struct First {
  RUNG_HD float operator()(float a, float b) const { return a != a || !(b < a || b != b) ? a : b; }
};

// Rows of one thread, of one tile of 2048 and of several parts; more rows than a block joins.
struct Size {
  std::int64_t rows, columns;
};
constexpr Size sizes[] = {{1, 1}, {3, 7}, {300, 9}, {2, 2048}, {1, 5001}, {5, 4100}};

TEST(ReduceBySimt, KeepsTheOrderOfElements) {
  for (const auto [rows, columns] : sizes) {
    const std::vector<std::int32_t> x = random_values<std::int32_t>(rows * columns, 1, 0, 50);
    // Columns first in memory: any strides will do.
    const View<const std::int32_t, 2> view{x.data(), {rows, columns}, {1, rows}};
    std::vector<Line> expected(static_cast<std::size_t>(rows), Line{1, 0});
    for (std::int64_t row = 0; row < rows; ++row) {
      Line& one = expected[static_cast<std::size_t>(row)];
      for (std::int64_t i = 0; i < columns; ++i) one = Compose()(one, ToLine()(view(row, i)));
    }
    Context context = Context::simt();
    std::vector<Line> y(expected.size());
    const View<Line, 1> out{y.data(), {rows}, {1}};
    reduce_by(context, view, out, Line{1, 0}, Compose(), ToLine());
    EXPECT_EQ(y, expected) << rows << ' ' << columns;
  }
}

TEST(ReduceBySimt, AgreesWithReduceOnMinima) {
  for (const auto [rows, columns] : sizes) {
    std::vector<float> x = random_values(rows * columns);
    x.back() = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> expected(static_cast<std::size_t>(rows));
    std::vector<float> y(expected.size());
    Context context = Context::simt();
    reduce(context, tensor(x, {rows, columns}), tensor(expected, {rows}),
           {.operation = Reduction::min, .axes = {1}});
    const View<const float, 2> view{x.data(), {rows, columns}, {columns, 1}};
    const View<float, 1> out{y.data(), {rows}, {1}};
    reduce_by(context, view, out, std::numeric_limits<float>::infinity(), First());
    EXPECT_TRUE(std::isnan(y.back()));
    y.pop_back();
    expected.pop_back();
    EXPECT_EQ(y, expected) << rows << ' ' << columns;
  }
}

}  // namespace
}  // namespace rung
#endif
