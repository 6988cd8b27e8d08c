// SPDX-License-Identifier: Apache-2.0
// Errors of reduce and their messages; user-defined functors on the CPU.
#include "rung/ops/reduce/reduce.cuh"
#include "rung/ops/reduce/test/reduce_test.hpp"

namespace rung {
namespace {

using namespace reduce_test;

TEST(ReduceErrors, NameTheArgumentAndWhatIsAccepted) {
  Context context = Context::cpu();
  std::vector<float> x(60);
  std::vector<float> y(60);
  std::vector<std::int64_t> index(60);
  const auto expect = [&](const std::string& part, const TensorRef& from, const TensorRef& to,
                          const ReduceOptions& options) {
    const std::string text = message_of([&] { reduce(context, from, to, options); });
    expect_text(text, part);
    expect_text(text, "accepted");
  };
  expect("y is 4", tensor(x, {3, 4}), tensor(y, {4}), {.axes = {1}});
  expect("y is 3x4", tensor(x, {3, 4}), tensor(y, {3, 4}), {.axes = {1}});
  expect("axis", tensor(x, {3, 4}), tensor(y, {3}), {.axes = {2}});
  expect("axis", tensor(x, {3, 4}), tensor(y, {3}), {.axes = {-3}});
  expect("twice", tensor(x, {3, 4}), tensor(y, {3}), {.axes = {1, -1}});
  expect("max over no elements", tensor(x, {0}), tensor(y, {}), {.operation = Reduction::max});
  expect("mean over no elements", tensor(x, {5, 0}), tensor(y, {5}),
         {.operation = Reduction::mean, .axes = {1}});
  expect("argmin over no elements", tensor(x, {0}), tensor(index, {}),
         {.operation = Reduction::argmin});
  expect("y is i64", tensor(x, {6}), tensor(index, {}), {});
  expect("y is f32", tensor(x, {6}), tensor(y, {}), {.operation = Reduction::argmax});
  expect("x is i64", tensor(index, {6}), tensor(y, {}), {.operation = Reduction::norm});
  expect("offsets are", tensor(x, {6}), tensor(y, {2}), {.offsets = tensor(index, {3, 1})});
  expect("axes are", tensor(x, {3, 4}), tensor(y, {3, 2}),
         {.axes = {0}, .offsets = tensor(index, {3})});
  std::vector<float> bounds = {0, 1, 2};
  expect("offsets is f32", tensor(x, {6}), tensor(y, {2}), {.offsets = tensor(bounds, {3})});
}

TEST(ReduceErrors, OverlapsAndNullPointers) {
  Context context = Context::cpu();
  std::vector<float> x(60);
  const auto message = [&](const TensorRef& from, const TensorRef& to) {
    return message_of([&] { reduce(context, from, to, {.axes = {1}}); });
  };
  EXPECT_NE(message(tensor(x, {5, 4}), TensorRef(x.data() + 10, DType::f32, Extents{5})), "");
  std::vector<float> y(5);
  EXPECT_NE(message(tensor(x, {5, 4}), TensorRef(y.data(), DType::f32, Extents{5}, Extents{0})),
            "");
  EXPECT_NE(message(TensorRef(nullptr, DType::f32, Extents{5, 4}), tensor(y, {5})), "");
  // The layout is cached from the previous call, but y now overlaps x.
  EXPECT_EQ(message(tensor(x, {5, 4}), tensor(y, {5})), "");
  EXPECT_NE(message(tensor(x, {5, 4}), TensorRef(x.data() + 20 - 5, DType::f32, Extents{5})), "");
}

TEST(ReduceErrors, OffsetsThatDescendOrLeaveTheAxis) {
  std::vector<float> x(2000, 1.0F);
  const auto sums = [&](Context& context, std::vector<std::int64_t> offsets) {
    std::vector<float> y(offsets.size() - 1, -1);
    reduce(context, tensor(x, {2000}), tensor(y, {static_cast<std::int64_t>(y.size())}),
           {.offsets = tensor(offsets, {static_cast<std::int64_t>(offsets.size())})});
    return y;
  };
  for (const int threads : {1, 2}) {
    Context context = Context::cpu(threads);
    std::string text = message_of([&] { sums(context, {0, 5, 3, 9}); });
    expect_text(text, "offsets[2] is 3");
    text = message_of([&] { sums(context, {0, 5, 2001}); });
    expect_text(text, "offsets[2] is 2001");
    text = message_of([&] { sums(context, {-1, 5}); });
    expect_text(text, "offsets[0] is -1");
    EXPECT_EQ(sums(context, {3, 5, 5, 2000}), (std::vector<float>{2, 0, 1995}));
  }
  // A GPU cannot report bad bounds without a wait: it clamps them to the axis.
  Context simulated = Context::simt();
  EXPECT_EQ(sums(simulated, {-4, 5, 3, 9, 3000}), (std::vector<float>{5, 0, 6, 1991}));
}

/// 2 x 2 matrices modulo 2^32, whose product does not commute.
struct Matrix {
  std::uint32_t a, b, c, d;
  bool operator==(const Matrix&) const = default;
};
struct Multiply {
  RUNG_HD Matrix operator()(const Matrix& x, const Matrix& y) const {
    return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
            x.c * y.b + x.d * y.d};
  }
};
struct Shear {
  RUNG_HD Matrix operator()(std::int32_t v) const {
    const auto u = static_cast<std::uint32_t>(v);
    return v % 2 == 0 ? Matrix{1, u, 0, 1} : Matrix{1, 0, u, 1};
  }
};

TEST(ReduceBy, KeepsTheOrderOfElements) {
  for (const std::int64_t rows : {1, 3, 40}) {
    const std::int64_t columns = 10007;
    std::vector<std::int32_t> x = random_values<std::int32_t>(rows * columns, 1, 0, 50);
    View<const std::int32_t, 2> view;
    view.data = x.data();
    // Column-major: any strides are valid.
    view.shape[0] = rows;
    view.shape[1] = columns;
    view.strides[0] = 1;
    view.strides[1] = rows;
    std::vector<Matrix> expected(static_cast<std::size_t>(rows), Matrix{1, 0, 0, 1});
    for (std::int64_t row = 0; row < rows; ++row) {
      Matrix& one = expected[static_cast<std::size_t>(row)];
      for (std::int64_t i = 0; i < columns; ++i) one = Multiply()(one, Shear()(view(row, i)));
    }
    for (const int threads : {1, 2, 5}) {
      Context context = Context::cpu(threads);
      std::vector<Matrix> y(static_cast<std::size_t>(rows));
      View<Matrix, 1> out;
      out.data = y.data();
      out.shape[0] = rows;
      out.strides[0] = 1;
      reduce_by(context, view, out, Matrix{1, 0, 0, 1}, Multiply(), Shear());
      EXPECT_EQ(y, expected) << rows << ' ' << threads;
    }
  }
}

TEST(ReduceBy, RefusesWhatDoesNotFit) {
  Context context = Context::cpu();
  float x = 0;
  View<const float, 2> view{&x, {1, 1}, {1, 1}};
  View<float, 1> out{&x, {2}, {1}};
  const auto plus = [](float a, float b) { return a + b; };
  EXPECT_NE(message_of([&] { reduce_by(context, view, out, 0.0F, plus); }).find("y has 2"),
            std::string::npos);
  Context simulated = Context::simt();
  out.shape[0] = 1;
  EXPECT_NE(
      message_of([&] { reduce_by(simulated, view, out, 0.0F, plus); }, ErrorCode::unsupported), "");
}

}  // namespace
}  // namespace rung
