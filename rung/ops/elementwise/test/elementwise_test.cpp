// SPDX-License-Identifier: Apache-2.0
// Properties of elementwise that `rung check` does not cover: algebra, memory, errors, the same
// bits for any number of threads.
#include "rung/ops/elementwise/test/elementwise_test.hpp"

#include <algorithm>
#include <cstring>

namespace rung {
namespace {

using namespace elementwise_test;
using enum ElementwiseFunction;

constexpr ElementwiseFunction every_function[] = {add,     sub,  mul,  div, axpy, fma, relu,
                                                  sigmoid, tanh, gelu, exp, silu, sign};

INSTANTIATE_TEST_SUITE_P(Backends, ElementwiseOn, backends, name_of_backend);

TEST_P(ElementwiseOn, InPlaceGivesTheSameBitsInEveryRung) {
  for (const ElementwiseFunction function : every_function) {
    auto x = random_values(1003, 1);
    auto y = random_values(1003, 2);
    auto w = random_values(1003, 3);
    std::vector<float> z(1003);
    const ElementwiseOptions options{.function = function, .alpha = function == axpy ? 0.7 : 1.0};
    const auto apart =
        bound(operands(function, vector_of(x), vector_of(y), vector_of(w)), vector_of(z), options);
    // Each operand in turn is also the result.
    for (int place = 0; place < arity(function); ++place) {
      std::vector<float> own = place == 0 ? x : place == 1 ? y : w;
      const std::vector<float> before = own;
      const auto pick = [&](int i, std::vector<float>& other) {
        return vector_of(place == i ? own : other);
      };
      const auto args =
          bound(operands(function, pick(0, x), pick(1, y), pick(2, w)), vector_of(own), options);
      for_each_rung(args, context, [&](std::string_view rung) {
        choose<Elementwise>(apart, context, Pick{rung}).run(apart, context);
        EXPECT_EQ(std::memcmp(own.data(), z.data(), z.size() * sizeof(float)), 0)
            << rung << ' ' << to_string(function) << " in place of operand " << place;
        own = before;
      });
    }
  }
}

TEST_P(ElementwiseOn, BroadcastEqualsTheOperandWrittenOut) {
  auto x = random_values(6 * 5 * 16, 1);
  auto y = random_values(5, 2);
  std::vector<float> whole(x.size());
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = y[i / 16 % 5];
  std::vector<float> z(x.size());
  std::vector<float> expected(x.size());
  const Extents shape{6, 5, 16};
  const auto tensor = [&](std::vector<float>& values) {
    return TensorRef(values.data(), DType::f32, shape);
  };
  elementwise(context, {tensor(x), tensor(whole)}, tensor(expected), {.function = mul});
  const auto args = bound({tensor(x), TensorRef(y.data(), DType::f32, Extents{5, 1})}, tensor(z),
                          {.function = mul});
  EXPECT_GE(for_each_rung(args, context,
                          [&](std::string_view rung) {
                            EXPECT_EQ(z, expected) << rung;
                            std::fill(z.begin(), z.end(), 0.0F);
                          }),
            2);
}

TEST_P(ElementwiseOn, AlgebraThatIsExact) {
  auto x = random_values(777, 1);
  auto y = random_values(777, 2);
  std::vector<float> a(777);
  std::vector<float> b(777);
  const auto run = [&](ElementwiseFunction function, std::vector<float>& p, std::vector<float>& q,
                       std::vector<float>& to, double alpha = 1) {
    elementwise(context, operands(function, vector_of(p), vector_of(q), vector_of(y)),
                vector_of(to), {.function = function, .alpha = alpha});
  };
  run(add, x, y, a);
  run(add, y, x, b);
  EXPECT_EQ(a, b);
  run(axpy, x, y, b, 1.0);
  EXPECT_EQ(a, b);
  run(axpy, y, x, b, -1.0);
  run(sub, x, y, a);
  EXPECT_EQ(a, b);
  std::vector<float> ones(777, 1.0F);
  run(fma, x, ones, a);  // x * 1 + y
  run(add, x, y, b);
  EXPECT_EQ(a, b);
}

TEST(ElementwiseSimt, RingOfTilesGoesRound) {
  // 12 tiles of 4 KiB per operand for each of two blocks per SM, and a remainder.
  Context context = Context::simt();
  const auto count = static_cast<std::size_t>(context.info().sms) * 2 * 6 * 1024 + 77;
  std::vector<double> x(count);
  std::vector<double> y(count, 3.0);
  std::vector<double> w(count, 0.5);
  std::vector<double> z(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<double>(i);
  elementwise(context, {vector_of(x), vector_of(y), vector_of(w)}, vector_of(z), {.function = fma},
              Pick{"bulk_copy_ring"});
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(z[i], 3.0 * static_cast<double>(i) + 0.5) << i;
}

TEST(ElementwiseCpu, SameBitsFromAnyNumberOfThreads) {
  // Large enough for several threads and for non-temporal stores.
  for (const std::size_t count : {std::size_t{200'003}, std::size_t{1'700'001}}) {
    auto x = random_values(count, 1);
    std::vector<float> expected(count);
    std::vector<float> z(count);
    Context one = Context::cpu(1);
    elementwise(one, {vector_of(x)}, vector_of(expected), {.function = gelu});
    for (const int threads : {2, 3, 5}) {
      Context context = Context::cpu(threads);
      std::fill(z.begin(), z.end(), 0.0F);
      elementwise(context, {vector_of(x)}, vector_of(z), {.function = gelu});
      EXPECT_EQ(std::memcmp(z.data(), expected.data(), count * sizeof(float)), 0) << threads;
    }
  }
}

TEST_P(ElementwiseOn, OffsetsBeyond32Bits) {
  // Rows about 2^31 elements apart: untouched pages of a reservation take no memory.
  const std::int64_t stride = (std::int64_t{1} << 31) + 7;
  const Reservation reserved(3 * stride * static_cast<std::int64_t>(sizeof(float)));
  auto* x = reserved.data<float>();
  if (x == nullptr) GTEST_SKIP() << "no address space";
  for (std::int64_t i = 0; i < 12; ++i) x[i / 4 * stride + i % 4] = static_cast<float>(i);
  std::vector<float> z(12);
  const ConstTensorRef far(x, DType::f32, Extents{3, 4}, Extents{stride, 1});
  elementwise(context, {far, far}, TensorRef(z.data(), DType::f32, Extents{3, 4}), {});
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(z[i], 2 * static_cast<float>(i));
}

TEST(ElementwiseErrors, NameTheArgumentAndWhatIsAccepted) {
  Context context = Context::cpu();
  std::vector<float> x(24);
  std::vector<float> z(24);
  std::vector<std::int32_t> i(24);
  const auto expect = [](const char* wanted, auto&& f) { expect_text(message_of(f), wanted); };
  const TensorRef whole = tensor(z, {4, 6});
  expect("y is missing", [&] { elementwise(context, {tensor(x, {4, 6})}, whole); });
  expect("y is given", [&] {
    elementwise(context, {tensor(x, {4, 6}), tensor(x, {4, 6})}, whole, {.function = relu});
  });
  expect("x is 4x5", [&] { elementwise(context, {tensor(x, {4, 5}), tensor(x, {4, 6})}, whole); });
  expect("y is 2x4x3", [&] {
    elementwise(context, {tensor(x, {4, 6}), tensor(x, {2, 4, 3})}, whole);
  });
  expect("y is i32", [&] { elementwise(context, {tensor(x, {4, 6}), tensor(i, {4, 6})}, whole); });
  expect("z is i32", [&] {
    elementwise(context, {tensor(i, {4, 6})}, tensor(i, {4, 6}), {.function = exp});
  });
  expect("z", [&] {
    elementwise(context, {tensor(x, {4, 6})}, TensorRef(z.data(), DType::f32, {4, 6}, {3, 1}),
                {.function = relu});
  });
  expect("null", [&] {
    elementwise(context, {TensorRef(nullptr, DType::f32, {4, 6})}, whole, {.function = relu});
  });
}

TEST(ElementwiseErrors, PartialOverlapIsSeenOnEveryCall) {
  Context context = Context::cpu();
  std::vector<float> x(64);
  std::vector<float> z(64);
  const TensorRef from(x.data(), DType::f32, Extents{32});
  elementwise(context, {from}, TensorRef(z.data(), DType::f32, Extents{32}), {.function = exp});
  // The layout is cached from the previous call, but z now overlaps x.
  const TensorRef inside(x.data() + 16, DType::f32, Extents{32});
  EXPECT_NE(message_of([&] { elementwise(context, {from}, inside, {.function = exp}); }), "");
  // Exactly in place is valid.
  EXPECT_EQ(message_of([&] { elementwise(context, {from}, from, {.function = exp}); }), "");
}

TEST(ElementwiseShapes, EmptyAndScalar) {
  Context context = Context::cpu();
  elementwise(context, {TensorRef(nullptr, DType::f32, Extents{0, 5})},
              TensorRef(nullptr, DType::f32, Extents{0, 5}), {.function = exp});
  float x = 2;
  float y = 3;
  float z = 0;
  elementwise(context, {TensorRef(&x, DType::f32, Extents{}), TensorRef(&y, DType::f32, Extents{})},
              TensorRef(&z, DType::f32, Extents{}), {.function = mul});
  EXPECT_EQ(z, 6);
}

}  // namespace
}  // namespace rung
