// SPDX-License-Identifier: Apache-2.0
// The text of problems: round trips, and messages for malformed text.
#include "rung/harness/problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "expect_error.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

using test::expect_error;

TEST(Problem, ReadsItsParts) {
  const Problem problem = Problem::parse("bf16 16x4096x0,ta,batch=4,alpha=-2.5");
  EXPECT_EQ(problem.dtype, DType::bf16);
  EXPECT_EQ(problem.extents, (std::vector<std::int64_t>{16, 4096, 0}));
  ASSERT_EQ(problem.options.size(), 3u);
  EXPECT_TRUE(problem.has("ta"));
  EXPECT_FALSE(problem.has("tb"));
  EXPECT_FALSE(problem.has("t"));
  EXPECT_EQ(problem.text("ta", "no"), "");
  EXPECT_EQ(problem.text("out", "same"), "same");
  EXPECT_EQ(problem.integer("batch", 1), 4);
  EXPECT_EQ(problem.integer("tiles", 7), 7);
  EXPECT_EQ(problem.number("alpha", 1.0), -2.5);
  EXPECT_EQ(problem.number("beta", 0.25), 0.25);
}

TEST(Problem, SpellingsRoundTrip) {
  for (const char* text : {"f32 1024x1024x1024", "f64 7", "i8 0x0,ta,tb", "e4m3 1x2x3x4x5x6x7x8",
                           "f16 9223372036854775807,alpha=1e-3,out=f32"}) {
    const Problem problem = Problem::parse(text);
    EXPECT_EQ(problem.to_string(), text);
    EXPECT_EQ(Problem::parse(problem.to_string()), problem);
  }
  EXPECT_EQ(Problem::parse("  f32   2x3  "), Problem::parse("f32 2x3"));
}

TEST(Problem, SaysWhatIsWrong) {
  const struct {
    const char* text;
    const char* word;
  } cases[] = {
      {"", "dtype"},
      {"1024x1024", "dtype"},
      {"f33 4", "f33"},
      {"f32", "extent ''"},
      {"f32 ", "extent ''"},
      {"f32 4x", "extent ''"},
      {"f32 x4", "extent ''"},
      {"f32 4xx4", "extent ''"},
      {"f32 4X4", "4X4"},
      {"f32 -4", "-4"},
      {"f32 4x-0", "-0"},
      {"f32 +4", "+4"},
      {"f32 4.5", "4.5"},
      {"f32 4 4", "4 4"},
      {"f32 9223372036854775808", "63 bits"},
      {"f32 99999999999999999999999999", "63 bits"},
      {"f32 1x1x1x1x1x1x1x1x1", "more than 8"},
      {"f32 4,", "no name"},
      {"f32 4,,ta", "no name"},
      {"f32 4,=3", "no name"},
      {"f32 4,a b", "no name"},
      {"f32 4,ta,ta", "twice"},
      {"f32 4,alpha=1,alpha=2", "twice"},
      {"f32 4,alpha=", "no value"},
      {"f32 4,alpha=1=2", "no value"},
      {"f32 ,ta", "extent ''"},
      {"f32 4\n", "extent"},
  };
  for (const auto& [text, word] : cases) {
    SCOPED_TRACE(text);
    expect_error(ErrorCode::invalid_argument, {word}, [&] { Problem::parse(text); });
  }
  expect_error(ErrorCode::invalid_argument, {"longer than"},
               [] { Problem::parse("f32 " + std::string(100000, '1')); });
  expect_error(ErrorCode::invalid_argument, {"extent"},
               [] { Problem::parse(std::string_view("f32 4\0", 6)); });
}

TEST(Problem, NumbersAreNumbers) {
  for (const char* bad : {"x", "1x", "1e999", "inf", "nan", "0x10", "--1"}) {
    const Problem problem = Problem::parse("f32 4,alpha=" + std::string(bad));
    SCOPED_TRACE(bad);
    expect_error(ErrorCode::invalid_argument, {"alpha", bad},
                 [&] { (void)problem.number("alpha", 1); });
    expect_error(ErrorCode::invalid_argument, {"alpha", bad},
                 [&] { (void)problem.integer("alpha", 1); });
  }
  const Problem flag = Problem::parse("f32 4,alpha");
  expect_error(ErrorCode::invalid_argument, {"alpha"}, [&] { (void)flag.number("alpha", 1); });
  const Problem fraction = Problem::parse("f32 4,batch=1.5");
  EXPECT_EQ(fraction.number("batch", 0), 1.5);
  expect_error(ErrorCode::invalid_argument, {"whole"}, [&] { (void)fraction.integer("batch", 1); });
}

TEST(Problem, WholeNumbersAreWithinWhatIsAccepted) {
  const Problem problem = Problem::parse("f32 1,a=7,b=-8,c=-9,d=2147483648,e=2147483647");
  EXPECT_EQ(problem.integer("a", 0, Problem::axis), 7);
  EXPECT_EQ(problem.integer("b", 0, Problem::axis), -8);
  EXPECT_EQ(problem.integer("e", 0, Problem::count), 2147483647);
  EXPECT_EQ(problem.integer("f", -77, Problem::count), -77) << "what is left out is not asked";
  expect_error(ErrorCode::invalid_argument, {"option 'c' is '-9'; accepted: -8 to 7"},
               [&] { (void)problem.integer("c", 0, Problem::axis); });
  expect_error(ErrorCode::invalid_argument, {"option 'd' is '2147483648'; accepted: 0 to 21474836"},
               [&] { (void)problem.integer("d", 0, Problem::count); });
}

// Numbers on a command line are doubles: 1e300 is no int.
TEST(Invocation, WholeNumbersAreWithinWhatIsAccepted) {
  Invocation call;
  call.numbers = {{"axis", -8}, {"half", 0.5}, {"huge", 1e300}, {"none", std::nan("")}};
  EXPECT_EQ(call.integer("fake", "axis", 1, Problem::axis), -8);
  EXPECT_EQ(call.integer("fake", "other", 1, Problem::axis), 1);
  for (const char* name : {"half", "huge", "none"}) {
    expect_error(ErrorCode::invalid_argument,
                 {std::string("fake: --") + name, "accepted: a whole number from -8 to 7"},
                 [&] { (void)call.integer("fake", name, 1, Problem::axis); });
  }
}

TEST(Problem, ExpectsRankAndOptions) {
  const Problem problem = Problem::parse("f32 4x4x4,ta");
  problem.expect("gemm", 3, {"ta", "tb"});
  expect_error(ErrorCode::invalid_argument, {"gemm takes 2 extents, not 3"},
               [&] { problem.expect("gemm", 2, {"ta"}); });
  expect_error(ErrorCode::invalid_argument, {"'ta'", "accepted: tb, batch"}, [&] {
    problem.expect("gemm", 3, {"tb", "batch"});
  });
  expect_error(ErrorCode::invalid_argument, {"none"}, [&] { problem.expect("gemm", 3, {}); });
}

TEST(Problem, AnyTextIsAProblemOrAnError) {
  // Characters of valid problems, so that random text gets far into the parser.
  constexpr std::string_view alphabet = "f3264bx1, =a-.e\t\xff";
  std::mt19937 random(3);
  int read = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string text = i % 2 == 0 ? "f32 " : "";
    for (std::size_t left = random() % 12; left > 0; --left) {
      text += alphabet[random() % alphabet.size()];
    }
    try {
      const Problem problem = Problem::parse(text);
      EXPECT_EQ(Problem::parse(problem.to_string()), problem) << text;
      ++read;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace rung
