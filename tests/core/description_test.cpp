// SPDX-License-Identifier: Apache-2.0
// Calls described as problems: every operator's description reproduces the call.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_pattern.hpp"
#include "rung/harness/problem_writer.hpp"

namespace rung {
namespace {

/// Returns names and types of an instance's tensors as one text; an in-place tensor counts once.
std::string tensors_of(const Instance& instance) {
  std::string text;
  for (const Inputs::Entry& entry : instance.inputs.entries()) {
    text += entry.name + (entry.written ? entry.read ? " in-out " : " out " : " in ") +
            std::string(to_string(entry.tensor.dtype)) + " " + to_string(entry.tensor.shape) + "\n";
  }
  return text;
}

void expect_described(const AnyOperator& op, const Problem& problem, const Context& context) {
  SCOPED_TRACE(std::string(op.name()) + " " + problem.to_string());
  const auto made = op.outline(problem, context);
  const Problem description = made->description();
  SCOPED_TRACE(description.to_string());
  ASSERT_EQ(Problem::parse(description.to_string()), description);
  const auto again = op.outline(description, context);
  EXPECT_TRUE(made->same_call(*again));
  EXPECT_EQ(tensors_of(*made), tensors_of(*again));
  EXPECT_EQ(again->description(), description);
}

TEST(EveryOperator, DescribesTheCallsOfItsProblems) {
  const Context context = Context::cpu();
  for (const AnyOperator* op : operators()) {
    for (const Backend backend : all_backends) {
      for (const Problem& problem : op->check_problems(backend)) {
        expect_described(*op, problem, context);
      }
      for (const Problem& problem : op->bench_problems(backend)) {
        expect_described(*op, problem, context);
      }
    }
  }
}

TEST(EveryOperator, DescribesTheCallsOfRandomProblems) {
  constexpr int draws = 20;
  const Context context = Context::cpu();
  for (const AnyOperator* op : operators()) {
    Random random(random_stream(1, op->name()));
    for (const std::string_view pattern : op->survey_patterns()) {
      for (int draw = 0; draw < draws; ++draw) {
        const Problem problem = Problem::parse(draw_text(pattern, random));
        try {
          static_cast<void>(op->footprint(problem, context));
        } catch (const Error&) {
          continue;  // options that contradict each other
        }
        expect_described(*op, problem, context);
      }
    }
  }
}

TEST(EveryOperator, TellsCallsApart) {
  const Context context = Context::cpu();
  for (const AnyOperator* op : operators()) {
    const std::vector<Problem> problems = op->check_problems(Backend::cpu);
    for (std::size_t i = 0; i + 1 < problems.size(); ++i) {
      SCOPED_TRACE(std::string(op->name()) + " " + problems[i].to_string() + " and " +
                   problems[i + 1].to_string());
      const auto one = op->outline(problems[i], context);
      const auto other = op->outline(problems[i + 1], context);
      // With fewer tensors, it may be the same call in place.
      if (one->inputs.entries().size() != other->inputs.entries().size()) continue;
      EXPECT_EQ(one->same_call(*other), one->description() == other->description());
    }
  }
}

TEST(ProblemWriter, WritesWhatDiffersFromItsDefault) {
  EXPECT_EQ(ProblemWriter(DType::bf16, {16, 4096})
                .flag("ta", true)
                .flag("tb", false)
                .text("edge", "clamp", "zero")
                .text("weights", "bt601", "bt601")
                .dtype("out", DType::f32, DType::bf16)
                .dtype("labels", DType::i64, DType::i64)
                .integer("axis", -2, -1)
                .integer("axes", 1, 1)
                .number("scale", 0.1, 1.0)
                .number("alpha", 1.0, 1.0)
                .extents("mask", {3, 5})
                .extents("window", {})
                .problem()
                .to_string(),
            "bf16 16x4096,ta,edge=clamp,out=f32,axis=-2,scale=0.1,mask=3x5");
  EXPECT_EQ(ProblemWriter(DType::f32, {}).problem().to_string(), "f32 1");
}

TEST(ProblemWriter, NumbersReadBackExactly) {
  for (const double value : {0.1, -2.5, 1e-5, 1.0 / 3, 0x1p-1074, 0x1.fffffffffffffp1023, 1e300}) {
    const Problem problem = ProblemWriter(DType::f32, {1}).number("scale", value, 0).problem();
    EXPECT_EQ(Problem::parse(problem.to_string()).number("scale", 0), value) << value;
  }
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(ProblemWriter(DType::f32, {1}).number("beta", value, 0).problem().options.empty());
  }
}

TEST(ProblemWriter, WritesAxesAsDigits) {
  const auto axes = [](const Extents& list) {
    return ProblemWriter(DType::f32, {1}).axes("axes", list, 4).problem().to_string();
  };
  EXPECT_EQ(axes({}), "f32 1");
  EXPECT_EQ(axes({-1}), "f32 1,axes=-1");
  EXPECT_EQ(axes({0, 2}), "f32 1,axes=02");
  EXPECT_EQ(axes({0, -1}), "f32 1,axes=03");
}

TEST(ProblemWriter, WritesNumbersPerAxisOnceWhereEqual) {
  const auto strides = [](const PerAxis& numbers, int axes) {
    return ProblemWriter(DType::f32, {1}).per_axis("s", numbers, axes, 1).problem().to_string();
  };
  EXPECT_EQ(strides(1, 2), "f32 1");
  EXPECT_EQ(strides({1, 1, 1}, 2), "f32 1");  // as C passes them
  EXPECT_EQ(strides({2, 2, 1}, 2), "f32 1,s=2");
  EXPECT_EQ(strides({2, 1}, 2), "f32 1,s=2x1");
  EXPECT_EQ(strides({2, 3, 1}, 1), "f32 1,s=2");
}

}  // namespace
}  // namespace rung
