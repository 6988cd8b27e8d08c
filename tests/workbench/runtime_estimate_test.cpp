// SPDX-License-Identifier: Apache-2.0
// What bench tries before it times anything: smaller problems.
#include <gtest/gtest.h>

#include "fake_operator.hpp"
#include "rung/workbench/bench.hpp"

namespace rung::test {
namespace {

// As half the channels of a layer cannot be all of its groups.
TEST(RuntimeEstimate, SmallerProblemsThatTheOperatorRejectsAreNotTried) {
  Context context = Context::on(Backend::cpu, 1);
  workbench::BenchPlan plan;
  plan.rungs = {"right"};
  const AnyOperator& fake = find_operator("fake");
  const Problem problem = Problem::parse("f32 2048x2048,least=2048");
  EXPECT_EQ(workbench::estimate_bench(fake, problem, context, plan).versions, 1);
  for (const RungInfo* rung : fake.rungs()) {
    if (rung->name != "right") continue;
    const auto predicted =
        workbench::predict_runtime(fake, *rung, problem, {.bytes = 1, .operations = 1}, context, 1);
    EXPECT_EQ(predicted.seconds, 0);
  }
}

}  // namespace
}  // namespace rung::test
