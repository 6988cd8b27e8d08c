// SPDX-License-Identifier: Apache-2.0
// Patterns of random problems: their meaning, and the distribution of what is drawn.
#include "rung/harness/problem_pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rung/core/error.hpp"

namespace rung {
namespace {

TEST(Pattern, TextWithoutRangesStaysAsItIs) {
  Random random(1);
  EXPECT_EQ(draw_text("f32 3x4x5,ta,alpha=-0.5,p=1x2", random), "f32 3x4x5,ta,alpha=-0.5,p=1x2");
  EXPECT_EQ(draw_text("", random), "");
  EXPECT_EQ(draw_text("f32 7..7x1..1", random), "f32 7x1");
}

TEST(Pattern, AlternativesComeAsOftenAsTheirWeights) {
  Random random(2);
  std::map<std::string, int> seen;
  constexpr int draws = 6000;
  for (int i = 0; i < draws; ++i) ++seen[draw_text("(a*3|(b|c),d|)", random)];
  ASSERT_EQ(seen.size(), 4u);
  const auto share = [&](const char* text) { return seen[text] / static_cast<double>(draws); };
  EXPECT_NEAR(share("a"), 0.6, 0.03);
  EXPECT_NEAR(share(""), 0.2, 0.03);
  EXPECT_NEAR(share("b,d"), 0.1, 0.03);
  EXPECT_NEAR(share("c,d"), 0.1, 0.03);
}

TEST(Pattern, WholeNumbersAreLogUniformAndOfEveryKind) {
  Random random(3);
  constexpr int draws = 20000;
  constexpr int most = 1 << 20;
  std::vector<int> decades(21);
  int powers = 0;
  int beside = 0;
  int sixteens = 0;
  int odd = 0;
  std::set<int> values;
  for (int i = 0; i < draws; ++i) {
    const int x = std::stoi(draw_text("1..1048576", random));
    ASSERT_GE(x, 1);
    ASSERT_LE(x, most);
    values.insert(x);
    ++decades[static_cast<std::size_t>(std::log2(x))];
    const auto power = [](int n) { return n > 0 && (n & (n - 1)) == 0; };
    powers += power(x);
    beside += power(x - 1) || power(x + 1);
    sixteens += x % 16 == 0;
    odd += x % 2;
  }
  for (std::size_t k = 0; k < 20; ++k) {
    EXPECT_GT(decades[k], draws / 20 * 0.7) << "about 2^" << k;
    EXPECT_LT(decades[k], draws / 20 * 1.4) << "about 2^" << k;
  }
  EXPECT_GT(powers, draws / 10);
  EXPECT_GT(beside, draws / 12);
  EXPECT_GT(sixteens, draws / 10);
  EXPECT_GT(odd, draws / 3);
  EXPECT_TRUE(values.contains(1));
  EXPECT_GT(values.size(), 5000u);
}

TEST(Pattern, EveryNumberOfAShortRangeIsDrawn) {
  Random random(4);
  std::set<std::string> seen;
  for (int i = 0; i < 2000; ++i) seen.insert(draw_text("5..20", random));
  EXPECT_EQ(seen.size(), 16u);
}

TEST(Pattern, NumbersWithAPointAreUniform) {
  Random random(5);
  double sum = 0;
  double least = 9;
  constexpr int draws = 4000;
  for (int i = 0; i < draws; ++i) {
    const std::string text = draw_text("low=-2.5..0.5", random);
    ASSERT_EQ(text.substr(0, 4), "low=");
    ASSERT_EQ(text.size() - text.find('.'), 7u) << text << ": six decimals";
    const double x = std::stod(text.substr(4));
    ASSERT_GE(x, -2.5);
    ASSERT_LE(x, 0.5);
    sum += x;
    least = std::min(least, x);
  }
  EXPECT_NEAR(sum / draws, -1, 0.1);
  EXPECT_LT(least, -2.45);
}

TEST(Pattern, NestedBeyondAnySenseIsRefusedNotRecursedInto) {
  const auto nested = [](std::size_t depth) {
    return "f32 " + std::string(depth, '(') + "7" + std::string(depth, ')');
  };
  Random random(7);
  EXPECT_EQ(draw_text(nested(64), random), "f32 7");
  EXPECT_THROW(draw_text(nested(65), random), Error);
  EXPECT_THROW(draw_text(nested(20000), random), Error);
}

TEST(Pattern, RangesBeyond63BitsAreRefused) {
  Random random(8);
  EXPECT_NO_THROW(draw_text("f32 1..9000000000000", random));
  for (const char* wide :
       {"f32 1..9223372036855", "f32 1..99999999999999", "x=0.5..18446744073709"}) {
    EXPECT_THROW(draw_text(wide, random), Error) << wide;
  }
}

TEST(Pattern, WhatIsNoneIsRefused) {
  for (const char* wrong :
       {"f32 (1|2", "f32 1)", "a|b", "f32 0..4", "f32 5..4", "f32 1..", "f32 ..3", "(a*x|b)",
        "(a*0|b)", "f32 3*2", "f32 1...4", "f32 1.5.2..3"}) {
    Random random(6);
    EXPECT_THROW(draw_text(wrong, random), Error) << wrong;
  }
}

}  // namespace
}  // namespace rung
