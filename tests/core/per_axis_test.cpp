// SPDX-License-Identifier: Apache-2.0
// PerAxis: accepted forms and rejected ones.
#include "rung/core/per_axis.hpp"

#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "rung/core/error.hpp"

namespace rung {
namespace {

using test::expect_error;

TEST(PerAxis, OneNumberHoldsForAllAxes) {
  const PerAxis from_number = 3;
  const PerAxis from_list = {3};
  EXPECT_EQ(from_number, from_list);
  for (int axis = 0; axis < 3; ++axis) EXPECT_EQ(from_number.along(axis), 3);
  require_per_axis("op", "stride", from_number, 2, 1);
}

TEST(PerAxis, NumbersAreInTheOrderOfTheAxes) {
  const PerAxis numbers = {4, 2};
  EXPECT_EQ(numbers.along(0), 4);
  EXPECT_EQ(numbers.along(1), 2);
  EXPECT_NE(numbers, PerAxis({2, 4}));
  require_per_axis("op", "stride", numbers, 2, 1);
}

TEST(PerAxis, FurtherNumbersMustBeTheDefault) {
  require_per_axis("op", "stride", {4, 2, 1}, 2, 1);
  require_per_axis("op", "padding", {4, 0, 0}, 1, 0);
  expect_error(ErrorCode::invalid_argument, {"stride[2] is 3", "accepted: 1"}, [] {
    require_per_axis("op", "stride", {4, 2, 3}, 2, 1);
  });
  expect_error(ErrorCode::invalid_argument, {"stride has 2 numbers", "1, or 3"}, [] {
    require_per_axis("op", "stride", {4, 2}, 3, 1);
  });
  expect_error(ErrorCode::invalid_argument, {"0 numbers"},
               [] { require_per_axis("op", "stride", PerAxis(), 2, 1); });
  expect_error(ErrorCode::invalid_argument, {"4 numbers", "up to 3"}, [] {
    static_cast<void>(PerAxis({1, 2, 3, 4}));
  });
}

TEST(PerAxis, IsReadFromText) {
  EXPECT_EQ(parse_per_axis("op", "k", "3", 2), PerAxis(3));
  EXPECT_EQ(parse_per_axis("op", "k", "3x-2", 2), PerAxis({3, -2}));
  for (const char* const wrong : {"", "x", "3x", "3x2x1", "3 2", "3x2 ", "99999999999"}) {
    expect_error(ErrorCode::invalid_argument, {"k is", "2 joined by x"},
                 [&] { static_cast<void>(parse_per_axis("op", "k", wrong, 2)); });
  }
}

}  // namespace
}  // namespace rung
