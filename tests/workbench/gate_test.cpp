// SPDX-License-Identifier: Apache-2.0
// rung bench --gate: its comparisons and messages. The actual times do not matter.
#include "rung/workbench/gate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fake_operator.hpp"

namespace rung::test {
namespace {

using nlohmann::json;
using workbench::GateRow;

bool is_here(const char* name) {
  const std::vector<const AnyOperator*> all = operators();
  return std::any_of(all.begin(), all.end(),
                     [&](const AnyOperator* op) { return op->name() == name; });
}

TEST(Gate, ShapesAreValidProblems) {
  Context context = Context::cpu(1);
  for (const workbench::AwkwardAndPlain& pair : workbench::awkward_shapes()) {
    if (!is_here(pair.op)) continue;
    for (const char* problem : {pair.awkward, pair.plain}) {
      EXPECT_NO_THROW(find_operator(pair.op).examine(Problem::parse(problem), context))
          << pair.op << ' ' << problem;
    }
  }
}

TEST(Gate, ARowAboveItsLimitOrWithAWrongResultIsNotGood) {
  const GateRow good{"fake", "f32 3x4", "f32 2x6", 2.9, 3, ""};
  const GateRow slow{"fake", "f32 5x4", "f32 2x6", 3.1, 3, ""};
  const GateRow wrong{"fake", "f32 7x4", "f32 2x6", 0, 3, "1 at 0x0, but 2 is wanted"};
  EXPECT_TRUE(good.good());
  EXPECT_FALSE(slow.good());
  EXPECT_FALSE(wrong.good());
  const std::string text = workbench::gate_text({slow, good, wrong});
  EXPECT_LT(text.find("3x4"), text.find("5x4")) << "those that fail come last" << text;
  EXPECT_NE(text.find("3 comparisons: 1 within their limits, 2 above"), std::string::npos) << text;
  EXPECT_EQ(json::parse(workbench::gate_json({good})).at("good"), true);
  EXPECT_EQ(json::parse(workbench::gate_json({good, slow})).at("good"), false);
  EXPECT_EQ(json::parse(workbench::gate_json({slow})).at("rows").at(0).at("good"), false);
}

// The fake's public call is its fastest correct rung or close to it, even on a busy machine.
TEST(Gate, ComparesTheChosenRungWithTheFastest) {
  const KnownMachine machine;
  const Outcome outcome = run_rung({"bench", "fake", "--gate", "--json"});
  const json told = json::parse(outcome.out);
  EXPECT_EQ(outcome.code, told.at("good") ? 0 : 1) << outcome.err;
  ASSERT_FALSE(told.at("rows").empty());
  for (const json& row : told.at("rows")) {
    EXPECT_EQ(row.at("op"), "fake");
    EXPECT_EQ(row.at("limit"), 2.0);
    EXPECT_GE(row.at("ratio").get<double>(), 1.0);
  }
}

TEST(Gate, WithoutItAnOperatorIsNeeded) {
  const Outcome outcome = run_rung({"bench"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("op: none given; accepted: an operator, or --gate"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace rung::test
