// SPDX-License-Identifier: Apache-2.0
// Arguments are used or rejected: each tensor of each operator with fields that contradict each
// other, options out of range, and tensors that are given but empty.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rung/rung.hpp"
#include "tests/core/wrong_fields.hpp"

namespace rung {
namespace {

using test::expect_error;

/// Returns a value without an enumerator.
template <class Enum>
Enum nonsense() {
  return static_cast<Enum>(99);
}

class Arguments : public testing::Test {
 protected:
  /// Expects that `body` accepts `right` as its argument `name`, and rejects wrong tensors with
  /// messages that name it.
  template <class Body>
  void checked(const char* name, const TensorRef& right, const Body& body) {
    test::expect_fields_checked(op, name, right, body);
  }
  template <class Body>
  void rejected(const std::string& words, const Body& body) {
    expect_error(ErrorCode::invalid_argument, {op + ": " + words}, body);
  }

  std::string op;
  Context context = Context::cpu(1);
  // x and w are read, y and z are written; a row is along the last axis, a column along the first.
  std::vector<float> memory_x = std::vector<float>(32, 1.0F), memory_w = memory_x;
  std::vector<float> memory_y = memory_x, memory_z = memory_x;
  std::vector<float> row = std::vector<float>(4, 1.0F), row_y = row, row_z = row;
  std::vector<float> column = std::vector<float>(8, 1.0F), column_y = column, column_z = column;
  TensorRef x{memory_x, {8, 4}}, w{memory_w, {8, 4}}, y{memory_y, {8, 4}}, z{memory_z, {8, 4}};
  std::vector<float> forgotten;  // a container that the caller forgot to fill
};

TEST_F(Arguments, Gemm) {
  op = "gemm";
  const TensorRef b(row, {4, 1});
  const TensorRef c(column_y, {8, 1});
  checked("a", x, [&](auto t) { gemm(context, t, b, c); });
  checked("b", b, [&](auto t) { gemm(context, x, t, c); });
  checked("c", c, [&](auto t) { gemm(context, x, b, t); });
  checked("bias", TensorRef(column, {8, 1}), [&](auto t) { gemm(context, x, b, c, {.bias = t}); });
  const auto with = [&](const GemmOptions& options) { gemm(context, x, b, c, options); };
  rejected("activation is 99; accepted: 0 to 4",
           [&] { with({.activation = nonsense<Activation>()}); });
  rejected("precision is 99; accepted: 0 to 2",
           [&] { with({.precision = nonsense<Precision>()}); });
  rejected("bias is 0; accepted: 1", [&] { with({.bias = forgotten}); });
}

TEST_F(Arguments, Reduce) {
  op = "reduce";
  std::vector<std::int64_t> offsets{0, 1, 4};
  std::vector<float> sums(16);
  const TensorRef out(column_y, {8});
  checked("x", x, [&](auto t) { reduce(context, t, out, {.axes = {1}}); });
  checked("y", out, [&](auto t) { reduce(context, x, t, {.axes = {1}}); });
  checked("offsets", offsets, [&](auto t) {
    reduce(context, x, TensorRef(sums, {8, 2}), {.offsets = t});
  });
  rejected("operation is 99; accepted: 0 to 7",
           [&] { reduce(context, x, out, {.operation = nonsense<Reduction>(), .axes = {1}}); });
  EXPECT_EQ(to_string(nonsense<Reduction>()), "unknown operation");
  Extents axes{1};
  axes.rank = 99;
  rejected("axes has rank 99", [&] { reduce(context, x, out, {.axes = axes}); });
  rejected("offsets are 0; accepted: n + 1 numbers", [&] {
    reduce(context, x, TensorRef(sums, {8, 2}), {.offsets = forgotten});
  });
}

TEST_F(Arguments, Scan) {
  op = "scan";
  std::vector<std::int64_t> offsets{0, 2};
  checked("x", x, [&](auto t) { scan(context, t, y); });
  checked("y", y, [&](auto t) { scan(context, x, t); });
  checked("offsets", offsets, [&](auto t) { scan(context, x, y, {.offsets = t}); });
  rejected("operation is 99; accepted: 0 to 3",
           [&] { scan(context, x, y, {.operation = nonsense<ScanOperation>()}); });
  // The message has the shape as given, whichever axis is scanned.
  const TensorRef overlapping(memory_y, {8, 4}, {1, 1});
  rejected("y (8x4, strides 1x1) overlaps itself",
           [&] { scan(context, x, overlapping, {.axis = 0}); });
}

TEST_F(Arguments, Histogram) {
  op = "histogram";
  std::vector<std::int64_t> counts(4);
  std::vector<float> edges{0, 1, 2, 3, 4};
  checked("x", x, [&](auto t) { histogram(context, t, counts); });
  checked("counts", counts, [&](auto t) { histogram(context, x, t); });
  checked("edges", edges, [&](auto t) { histogram(context, x, counts, {.edges = t}); });
  rejected("edges are given, and low = 0 and high = 2; accepted: either",
           [&] { histogram(context, x, counts, {.high = 2, .edges = edges}); });
  rejected("edges is 0 and counts 4", [&] { histogram(context, x, counts, {.edges = forgotten}); });
}

TEST_F(Arguments, Transpose) {
  op = "transpose";
  const TensorRef turned(memory_y, {4, 8});
  checked("x", x, [&](auto t) { transpose(context, t, turned); });
  checked("y", turned, [&](auto t) { transpose(context, x, t); });
  Extents order{1, 0};
  order.rank = -1;
  rejected("order has rank -1", [&] { transpose(context, x, turned, {.order = order}); });
  rejected("y is 8x4; accepted: 4x8 (axis 0 has extent 8 instead of 4)",
           [&] { transpose(context, x, y); });
  rejected("y is 4; accepted: 4x8 (1 axis instead of 2)", [&] { transpose(context, x, row_y); });
}

TEST_F(Arguments, Elementwise) {
  op = "elementwise";
  using enum ElementwiseFunction;
  checked("x", x, [&](auto t) { elementwise(context, {t, w, z}, y, {.function = fma}); });
  checked("y", x, [&](auto t) { elementwise(context, {w, t, z}, y, {.function = fma}); });
  checked("w", x, [&](auto t) { elementwise(context, {w, z, t}, y, {.function = fma}); });
  checked("z", y, [&](auto t) { elementwise(context, {x, w}, t); });
  rejected("function is 99; accepted: 0 to 12", [&] {
    elementwise(context, {x, w}, y, {.function = nonsense<ElementwiseFunction>()});
  });
  EXPECT_EQ(to_string(nonsense<ElementwiseFunction>()), "unknown function");
  rejected("alpha is 2, but add has none; accepted: 1, or the function axpy", [&] {
    elementwise(context, {x, w}, y, {.alpha = 2});
  });
  rejected("y is 8, z is 8x4: the extents 8 (axis 0) and 4 (z's axis 1) differ", [&] {
    elementwise(context, {x, column}, y);
  });
  rejected("y is 0, z is 8x4: the extents 0 (axis 0) and 4", [&] {
    elementwise(context, {x, forgotten}, y);
  });
}

TEST_F(Arguments, Softmax) {
  op = "softmax";
  checked("x", x, [&](auto t) { softmax(context, t, y); });
  checked("y", y, [&](auto t) { softmax(context, x, t); });
}

TEST_F(Arguments, SoftmaxBackward) {
  op = "softmax_backward";
  checked("y", x, [&](auto t) { softmax_backward(context, t, w, y); });
  checked("dy", x, [&](auto t) { softmax_backward(context, w, t, y); });
  checked("dx", y, [&](auto t) { softmax_backward(context, x, w, t); });
}

TEST_F(Arguments, Norm) {
  op = "norm";
  const auto with = [&](const NormOptions& options) { layer_norm(context, x, y, options); };
  checked("x", x, [&](auto t) { layer_norm(context, t, y); });
  checked("y", y, [&](auto t) { layer_norm(context, x, t); });
  checked("gamma", row, [&](auto t) { with({.gamma = t}); });
  checked("beta", row, [&](auto t) { with({.beta = t}); });
  checked("residual", w, [&](auto t) { with({.residual = t}); });
  checked("sum", z, [&](auto t) { with({.residual = w, .sum = t}); });
  checked("mean", column_y, [&](auto t) { with({.mean = t}); });
  checked("rstd", TensorRef(column_z, {8, 1}), [&](auto t) { with({.rstd = t}); });
  rejected("gamma is 0; accepted: 4", [&] { with({.gamma = forgotten}); });
  rejected("residual is 0; accepted: 8x4", [&] { with({.residual = forgotten}); });
  rejected("epsilon is 1e+300; accepted: 0 or more, finite in f32",
           [&] { with({.epsilon = 1e300}); });
  rejected("axes is 2147483647; accepted: 1 to 1", [&] { with({.axes = INT32_MAX}); });
  rejected("mean (8x1, strides 0x1) overlaps itself", [&] {
    with({.mean = TensorRef(column_y, {8, 1}, {0, 1})});
  });
}

TEST_F(Arguments, NormBackward) {
  op = "norm_backward";
  const auto with = [&](const NormBackwardOptions& options) {
    layer_norm_backward(context, w, x, y, options);
  };
  checked("dy", w, [&](auto t) { layer_norm_backward(context, t, x, y); });
  checked("x", x, [&](auto t) { layer_norm_backward(context, w, t, y); });
  checked("dx", y, [&](auto t) { layer_norm_backward(context, w, x, t); });
  checked("gamma", row, [&](auto t) { with({.gamma = t}); });
  checked("mean", column, [&](auto t) { with({.mean = t, .rstd = column_y}); });
  checked("rstd", column, [&](auto t) { with({.mean = column_y, .rstd = t}); });
  checked("dgamma", row_y, [&](auto t) { with({.dgamma = t}); });
  checked("dbeta", row_z, [&](auto t) { with({.dbeta = t}); });
  rejected("epsilon is 1e+300", [&] { with({.epsilon = 1e300}); });
  rejected("dgamma is 0; accepted: 4", [&] { with({.dgamma = forgotten}); });
}

TEST_F(Arguments, AContextThatWasMovedFromIsAnError) {
  op = "softmax";
  softmax(context, x, y);
  Context other = std::move(context);
  for (int call = 0; call < 2; ++call) {
    // NOLINTNEXTLINE(bugprone-use-after-move): that is the test
    rejected("the context has been moved from", [&] { softmax(context, x, y); });
    rejected("the context has been moved from", [&] { softmax(context, x, y, {}, {"naive"}); });
  }
  softmax(other, x, y);
}

TEST_F(Arguments, ContainersAndSpansArePassedAsTheyAre) {
  const std::vector<float> values{1, 2, 3, 4};
  float sum = 0;
  reduce(context, values, TensorRef(&sum, Extents{}));
  EXPECT_EQ(sum, 10.0F);
  std::vector<float> sums(4);
  scan(context, std::span(values), sums);
  EXPECT_EQ(sums, (std::vector<float>{1, 3, 6, 10}));
}

}  // namespace
}  // namespace rung
