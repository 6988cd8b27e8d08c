// SPDX-License-Identifier: Apache-2.0
// Results of elementwise for special values: overflow, infinities, NaN, one rounding or two.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "rung/ops/elementwise/test/elementwise_test.hpp"

namespace rung {
namespace {

using namespace elementwise_test;
using enum ElementwiseFunction;

class ElementwiseValuesOn : public ElementwiseOn {};
INSTANTIATE_TEST_SUITE_P(Backends, ElementwiseValuesOn, backends, name_of_backend);

template <class T>
void expect_wraps(Context& context) {
  constexpr T most = std::numeric_limits<T>::max();
  constexpr T least = std::numeric_limits<T>::min();
  using Wide = std::make_unsigned_t<T>;
  // More than a pack of each pair, so that vector code and its tail are tested.
  std::vector<T> x;
  std::vector<T> y;
  for (int i = 0; i < 75; ++i) {
    for (const auto& [a, b] : {std::pair{most, T{1}}, {least, T{1}}, {most, most}, {least, most}}) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  std::vector<T> z(x.size());
  for (const ElementwiseFunction function : {add, sub, mul}) {
    const auto args = bound({vector_of(x), vector_of(y)}, vector_of(z), {.function = function});
    const int ran = for_each_rung(args, context, [&](std::string_view rung) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto a = static_cast<std::uint64_t>(x[i]);
        const auto b = static_cast<std::uint64_t>(y[i]);
        const std::uint64_t wide = function == add ? a + b : function == sub ? a - b : a * b;
        ASSERT_EQ(z[i], static_cast<T>(static_cast<Wide>(wide)))
            << rung << ' ' << to_string(function) << ' ' << +x[i] << ", " << +y[i];
      }
    });
    EXPECT_GE(ran, 2);
  }
}

TEST_P(ElementwiseValuesOn, IntegersWrapInEveryRung) {
  expect_wraps<std::int32_t>(context);
  expect_wraps<std::int64_t>(context);
  expect_wraps<std::uint8_t>(context);
}

TEST_P(ElementwiseValuesOn, SpecialValuesInEveryRung) {
  struct Case {
    ElementwiseFunction function;
    float x, y, expected;
  };
  const Case cases[] = {
      {relu, nan, 0, nan},
      {relu, -infinity, 0, 0},
      {relu, infinity, 0, infinity},
      {relu, -0.0F, 0, -0.0F},
      {exp, nan, 0, nan},
      {exp, -infinity, 0, 0},
      {exp, infinity, 0, infinity},
      {exp, 0, 0, 1},
      {exp, 100, 0, infinity},
      {exp, -200, 0, 0},
      {tanh, nan, 0, nan},
      {tanh, -infinity, 0, -1},
      {tanh, infinity, 0, 1},
      {tanh, 0, 0, 0},
      {sigmoid, nan, 0, nan},
      {sigmoid, -infinity, 0, 0},
      {sigmoid, infinity, 0, 1},
      {sigmoid, 0, 0, 0.5F},
      {gelu, nan, 0, nan},
      {gelu, -infinity, 0, 0},
      {gelu, infinity, 0, infinity},
      {gelu, 0, 0, 0},
      {silu, nan, 0, nan},
      {silu, -infinity, 0, 0},
      {silu, infinity, 0, infinity},
      {silu, 0, 0, 0},
      {sign, nan, 0, nan},
      {sign, -infinity, 0, -1},
      {sign, infinity, 0, 1},
      {sign, -1e-42F, 0, -1},
      {sign, 0, 0, 0},
      {div, 1, 0, infinity},
      {div, -1, 0, -infinity},
      {div, 0, 0, nan},
      {add, infinity, -infinity, nan},
      {mul, 0, infinity, nan},
      {add, nan, 1, nan},
  };
  for (const Case& one : cases) {
    // 37 elements: whole vectors, packs, and a tail.
    std::vector<float> x(37, one.x);
    std::vector<float> y(37, one.y);
    std::vector<float> z(37);
    const auto args = bound(operands(one.function, vector_of(x), vector_of(y), {}), vector_of(z),
                            {.function = one.function});
    const int ran = for_each_rung(args, context, [&](std::string_view rung) {
      for (const float value : z) {
        const bool same = std::isnan(one.expected) ? std::isnan(value) : value == one.expected;
        ASSERT_TRUE(same) << rung << ' ' << to_string(one.function) << '(' << one.x << ", " << one.y
                          << ") is " << value;
        if (one.function == relu) {
          ASSERT_EQ(std::signbit(value), std::signbit(one.expected));
        }
      }
      std::fill(z.begin(), z.end(), 7.0F);
    });
    EXPECT_GE(ran, 3);
  }
}

/// Checks x from `first` to `last`, where e^-x approaches the largest number and overflows.
template <class T>
void expect_small_sigmoids(Context& context, T first, T last) {
  constexpr int count = 4001;
  constexpr T smallest = std::numeric_limits<T>::min();
  constexpr T smallest_silu = sizeof(T) == 8 ? T(0x1p-1012) : T(0x1p-119);  // see the contract
  std::vector<T> x(count);
  std::vector<T> z(count);
  for (int i = 0; i < count; ++i) {
    x[static_cast<std::size_t>(i)] = first + (last - first) * static_cast<T>(i) / (count - 1);
  }
  for (const ElementwiseFunction function : {sigmoid, silu}) {
    const auto args = bound({vector_of(x)}, vector_of(z), {.function = function});
    const int ran = for_each_rung(args, context, [&](std::string_view rung) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        const long double sigma = 1 / (1 + std::exp(-static_cast<long double>(x[i])));
        const long double exact = function == silu ? x[i] * sigma : sigma;
        const long double bound = 5 * std::numeric_limits<T>::epsilon() * std::abs(exact);
        const bool may_be_zero =
            function == silu ? std::abs(exact) < smallest_silu : sigma < smallest;
        ASSERT_TRUE((may_be_zero && z[i] == 0) ||
                    std::abs(z[i] - exact) <= bound + std::numeric_limits<T>::denorm_min())
            << rung << ' ' << to_string(function) << '(' << x[i] << ") is " << z[i] << ", not "
            << exact;
      }
      std::fill(z.begin(), z.end(), T{7});
    });
    EXPECT_GE(ran, 1);
  }
}

TEST_P(ElementwiseValuesOn, SmallSigmoidsAreSmallInEveryRung) {
  expect_small_sigmoids<float>(context, -104, -80);
  expect_small_sigmoids<double>(context, -746, -700);
}

TEST_P(ElementwiseValuesOn, FusedMeansRoundedOnce) {
  // (1 + e)(1 - e) - 1 = -e^2, which is lost if product and sum are rounded separately.
  const float e = 0x1p-13F;
  std::vector<float> x(40, 1 + e);
  std::vector<float> y(40, 1 - e);
  std::vector<float> w(40, -1);
  std::vector<float> z(40);
  const auto args =
      bound({vector_of(x), vector_of(y), vector_of(w)}, vector_of(z), {.function = fma});
  for_each_rung(args, context, [&](std::string_view rung) {
    for (const float value : z) ASSERT_EQ(value, -e * e) << rung;
  });
}

}  // namespace
}  // namespace rung
