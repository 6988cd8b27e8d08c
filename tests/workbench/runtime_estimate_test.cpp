// SPDX-License-Identifier: Apache-2.0
// Estimates of a measurement's duration, from smaller problems.
#include <gtest/gtest.h>

#include "fake_operator.hpp"
#include "rung/core/error.hpp"
#include "rung/workbench/bench.hpp"
#include "tests/support/stall_watch.hpp"

namespace rung::test {
namespace {

const RungInfo& rung_of(const AnyOperator& op, std::string_view name) {
  for (const RungInfo* rung : op.rungs()) {
    if (rung->name == name && rung->backend == Backend::cpu) return *rung;
  }
  throw Error(ErrorCode::invalid_argument, "no such rung");
}

// 0.41 s per call: two calls to check it, one to find the repeats, and four rounds.
TEST(RuntimeEstimate, EstimateComesFromAFirstTiming) {
  Context context = Context::on(Backend::cpu, 1);
  workbench::BenchPlan plan;
  plan.timing.rounds = 4;
  plan.timing.slow_seconds = 10;
  plan.rungs = {"slow_at_times"};
  const AnyOperator& fake = find_operator("fake");
  const StallWatch watch;
  const auto estimate = workbench::estimate_bench(fake, Problem::parse("f32 3x41"), context, plan);
  EXPECT_EQ(estimate.versions, 1);
  EXPECT_GT(estimate.seconds, 7 * 0.41 - 0.01);
  constexpr double stall = 0.3;  // of a timing; the estimate is a multiple of this timing
  RUNG_EXPECT_UNLESS_STALLED(estimate.seconds < 7 * 0.41 + 3, watch, stall);
  plan.timing = {};  // by default it is timed in three rounds
  const double by_itself =
      workbench::estimate_bench(fake, Problem::parse("f32 3x41"), context, plan).seconds;
  RUNG_EXPECT_UNLESS_STALLED(by_itself < 6 * 0.41 + 3, watch, stall);
}

TEST(RuntimeEstimate, EstimateGrowsWithTheProblemThoughASmallOneIsTimed) {
  Context context = Context::on(Backend::cpu, 1);
  workbench::BenchPlan plan;
  plan.rungs = {"right", "throws", "peer_absent"};
  const AnyOperator& fake = find_operator("fake");
  const StallWatch watch;
  const auto small =
      workbench::estimate_bench(fake, Problem::parse("f32 1024x2048"), context, plan);
  const auto large =
      workbench::estimate_bench(fake, Problem::parse("f32 65536x2048"), context, plan);
  EXPECT_EQ(small.versions, 1) << "one throws, one is not installed";
  // 64 times the elements; but a slow version is timed in 3 rounds instead of 15.
  RUNG_EXPECT_UNLESS_STALLED(large.seconds > 4 * small.seconds, watch, 0.005);
  EXPECT_GT(large.seconds, 64 * 0.01 / 15);
}

// Like the groups of a convolution and its channels: half of a valid problem may be invalid.
TEST(RuntimeEstimate, SizesThatCannotBeHalvedAreEstimatedToo) {
  Context context = Context::on(Backend::cpu, 1);
  workbench::BenchPlan plan;
  plan.rungs = {"right"};
  const AnyOperator& fake = find_operator("fake");
  const auto whole = Problem::parse("f32 1024x4096,rows_of=1024");
  const auto estimate = workbench::estimate_bench(fake, whole, context, plan);
  EXPECT_EQ(estimate.versions, 1);
  EXPECT_GT(estimate.seconds, 0);
  const Cost cost = fake.make(whole, {}, 1, context.device())->cost();
  workbench::SmallerProblems smaller(fake, whole, cost, context);
  EXPECT_EQ(smaller.predict(rung_of(fake, "right"), 1).seconds, 0)
      << "no smaller problem to conclude from";
}

// Like the iterations of a stencil: the first smaller problem has fewer.
TEST(RuntimeEstimate, WhatMultipliesTheWorkIsHalvedToo) {
  Context context = Context::on(Backend::cpu, 1);
  const AnyOperator& fake = find_operator("fake");
  const RungInfo& right = rung_of(fake, "right");
  const auto predict = [&](const char* text) {
    const Problem problem = Problem::parse(text);
    const Cost cost = fake.outline(problem, context)->cost();
    constexpr double sure = 1e6;  // seconds above which the first smaller problem suffices
    return workbench::SmallerProblems(fake, problem, cost, context).predict(right, sure);
  };
  const auto many = predict("f32 64x64,times=2000000000");
  EXPECT_EQ(many.smaller, "f32 16x16,times=122070");
  EXPECT_GT(many.seconds, 0);
  EXPECT_EQ(predict("f32 64x64,times=20").smaller, "") << "small enough as it is";
  EXPECT_EQ(predict("f32 65536x65536,rows_of=32").smaller, "f32 1024x1024,rows_of=32")
      << "an option that multiplies nothing stays";
}

// No part of the problem can be made smaller, so nothing is run.
TEST(RuntimeEstimate, WhatCannotBeMadeSmallIsConcludedFromItsWork) {
  Context context = Context::on(Backend::cpu, 1);
  const AnyOperator& fake = find_operator("fake");
  const Problem problem = Problem::parse("f32 16x16,times=2.5e12");
  const auto estimate =
      workbench::estimate_check(fake, problem, context, {&rung_of(fake, "throws")}, true);
  EXPECT_EQ(estimate.versions, 1) << "it would throw if it were called";
  EXPECT_GT(estimate.seconds, 1e5);
  EXPECT_FALSE(workbench::is_quick(fake, problem, context));
  EXPECT_TRUE(workbench::is_quick(fake, Problem::parse("f32 16x16,times=2.5"), context));
}

TEST(RuntimeEstimate, OfACheckGrowsWithTheProblem) {
  Context context = Context::on(Backend::cpu, 1);
  const AnyOperator& fake = find_operator("fake");
  const auto seconds = [&](const char* problem) {
    return workbench::estimate_check(fake, Problem::parse(problem), context,
                                     {&rung_of(fake, "right"), nullptr}, true)
        .seconds;
  };
  const StallWatch watch;
  const double large = seconds("f32 65536x65536");
  const double small = seconds("f32 4096x4096");
  RUNG_EXPECT_UNLESS_STALLED(large > 20 * small, watch, 0.005);
}

TEST(RuntimeEstimate, MoreThanIsAcceptedNamesTheProblemAndWhatIs) {
  const AnyOperator& fake = find_operator("fake");
  const auto expect = [&](double max_seconds) {
    workbench::expect_in_time(fake, "'f32 4x4'", "check", {.versions = 3, .seconds = 7300},
                              max_seconds, "a smaller problem takes less");
  };
  expect(7300);
  try {
    expect(600);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_STREQ(error.what(),
                 "problem: 'f32 4x4' of fake takes about 2 h to check (3 versions); accepted: 600 "
                 "s, or what --max-seconds says; a smaller problem takes less");
  }
}

// Like the time of launching a kernel: sixteen times the smallest problem's 100 ms would be too
// much.
TEST(RuntimeEstimate, WhatStartingTakesDoesNotGrow) {
  Context context = Context::on(Backend::cpu, 1);
  const AnyOperator& fake = find_operator("fake");
  const auto whole = Problem::parse("f32 4096x4096");
  const Cost cost = fake.make(whole, {}, 1, context.device())->cost();
  workbench::SmallerProblems smaller(fake, whole, cost, context);
  const RungInfo& slow = rung_of(fake, "slow_at_times");
  const StallWatch watch;
  const auto far = smaller.predict(slow, 20);
  EXPECT_EQ(far.smaller, "f32 1024x1024") << "sure enough";
  EXPECT_GT(far.seconds, 16 * 0.1);
  const auto near = smaller.predict(slow, 1.5);
  RUNG_EXPECT_UNLESS_STALLED(near.smaller == "f32 2048x2048", watch, 0.05);
  RUNG_EXPECT_UNLESS_STALLED(near.seconds < 1.5, watch, 0.05);
  EXPECT_EQ(smaller.predict(slow, 0.1).smaller, "f32 1024x1024") << "hopeless";
}

TEST(RuntimeEstimate, EstimatesAreRounded) {
  EXPECT_EQ(workbench::format_estimate(0.02), "about a second");
  EXPECT_EQ(workbench::format_estimate(7.4), "about 7 s");
  EXPECT_EQ(workbench::format_estimate(43), "about 45 s");
  EXPECT_EQ(workbench::format_estimate(200), "about 3 min");
  EXPECT_EQ(workbench::format_estimate(10000), "about 3 h");
}

}  // namespace
}  // namespace rung::test
