// SPDX-License-Identifier: Apache-2.0
// reduce on the simulated GPU: the choice of rung per shape, and the kernels of reduce_by, which
// are compiled here if there is a simulator (tests.cmake).
#include "rung/ops/reduce/reduce.cuh"

#include <cmath>
#include <limits>

#include "rung/ops/reduce/test/reduce_test.hpp"

#if defined(RUNG_SIMT)
namespace rung {
namespace {

using namespace reduce_test;

/// The map x -> slope x + shift; composition does not commute.
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

/// Functor that returns the smaller argument, the first of equals, and NaN before all numbers.
struct First {
  RUNG_HD float operator()(float a, float b) const { return a != a || !(b < a || b != b) ? a : b; }
};

struct Shape {
  Extents x;
  Extents axes;
  Extents y;
};
std::string_view chosen_for(DType type, const Shape& shape, Reduction operation = Reduction::sum,
                            std::uintptr_t shift = 0) {
  const Context context = Context::simt();
  // Never dereferenced: only the address and the layout matter.
  constexpr std::uintptr_t somewhere = std::uintptr_t{1} << 30;
  Reduce::Call call;
  call.x = ConstTensorRef(reinterpret_cast<const void*>(somewhere + shift), type, shape.x);
  call.y = TensorRef(reinterpret_cast<void*>(somewhere),
                     operation == Reduction::argmax ? DType::i64 : type, shape.y);
  call.operation = operation;
  call.axes = shape.axes;
  return choose<Reduce>(bind<Reduce>(call), context).info.name;
}

TEST(ReduceSimt, EveryShapeHasItsKernel) {
  const Shape even_rows{{100000, 1 << 13}, {1}, {100000}};
  const Shape columns{{4096, 4096}, {0}, {4096}};
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
    EXPECT_EQ(chosen_for(type, {{1}, {}, {}}), "one_row");
    // The row is divided among blocks by any of these kernels, whichever is predicted to be
    // fastest.
    for (const std::int64_t length : {1 << 20, 1 << 30}) {
      const std::string_view rung = chosen_for(type, {{length}, {}, {}});
      EXPECT_TRUE(rung == "one_row" || rung == "single_pass_last_block" ||
                  (rung == "atomic_finish" && type == DType::i32))
          << length << ": " << rung;
    }
    EXPECT_EQ(chosen_for(type, {{100000, 40}, {1}, {100000}}), "short_rows");
    EXPECT_EQ(chosen_for(type, {{3, 40}, {1}, {3}}), "short_rows");
    EXPECT_EQ(chosen_for(type, {{3, 1 << 20}, {1}, {3}}), "single_pass_last_block");
    EXPECT_EQ(chosen_for(type, {{7, 300, 5000}, {0, 2}, {300}}), "single_pass_last_block");
    EXPECT_EQ(chosen_for(type, even_rows), "even_rows");
    EXPECT_EQ(chosen_for(type, even_rows, Reduction::argmax), "even_rows");
    EXPECT_EQ(chosen_for(type, {{100000, 16384}, {1}, {100000}}, Reduction::sum, 8),
              "single_pass_last_block");
    EXPECT_EQ(chosen_for(type, columns), "columns");
    EXPECT_EQ(chosen_for(type, {{1 << 20, 3}, {0}, {3}}), "columns");
    EXPECT_EQ(chosen_for(type, columns, Reduction::argmax), "adjacent_results");
  }
  EXPECT_EQ(chosen_for(DType::u8, columns), "adjacent_results");
  EXPECT_EQ(chosen_for(DType::u8, {{1 << 20}, {}, {}}), "one_row");
  EXPECT_EQ(chosen_for(DType::f32, {{1 << 20}, {}, {}}, Reduction::product), "general");
}

// Rows within one thread, within a tile of 2048 and of several parts; more rows than a block joins.
struct Size {
  std::int64_t rows, columns;
};
constexpr Size sizes[] = {{1, 1}, {3, 7}, {300, 9}, {2, 2048}, {1, 5001}, {5, 4100}};

TEST(ReduceBySimt, KeepsTheOrderOfElements) {
  for (const auto [rows, columns] : sizes) {
    const std::vector<std::int32_t> x = random_values<std::int32_t>(rows * columns, 1, 0, 50);
    // Column-major: any strides are valid.
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
