// SPDX-License-Identifier: Apache-2.0
// Depth of kernels in steps: by formula, and as counted by the simulated GPU.
#include "command_line.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung::test {
namespace {

using nlohmann::json;

/// Returns false under the address sanitizer, where kernels have no hooks.
bool is_counted([[maybe_unused]] const std::string& op) {
#if !defined(__SANITIZE_ADDRESS__)
  for (const AnyOperator* one : operators()) {
    if (one->name() == op) return static_cast<bool>(available(Backend::simt));
  }
#endif
  return false;
}

double counted_depth(const std::string& op, const std::string& rung, const std::string& problem) {
  const Outcome outcome = run_rung({"explain", op + "/" + rung, problem, "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json printed = json::parse(outcome.out);
  for (const json& one : printed.at("rungs")) {
    if (one.at("rung") == rung) return one.at("counters").at("depth");
  }
  return -1;
}

TEST(Depth, AreCountedOneAfterAnother) {
  if (!is_counted("scan")) GTEST_SKIP() << "no scan on the simulated GPU";
  EXPECT_EQ(counted_depth("scan", "kogge_stone", "f32 1024"), 22);
  EXPECT_EQ(counted_depth("scan", "kogge_stone_double_buffered", "f32 1024"), 12);
  EXPECT_EQ(counted_depth("scan", "brent_kung", "f32 1024"), 21);
  // Independent blocks do not add to the depth.
  EXPECT_EQ(counted_depth("scan", "kogge_stone", "f32 4x1024"), 22);
}

// A second launch begins when the first has ended.
TEST(Depth, OfLaunchesAddUp) {
  if (!is_counted("reduce")) GTEST_SKIP() << "no reduce on the simulated GPU";
  EXPECT_EQ(counted_depth("reduce", "shared", "f32 256"), 9);
  EXPECT_EQ(counted_depth("reduce", "shared", "f32 65536"), 18);
}

TEST(Depth, WorkComparesFormulaAndCount) {
  if (!is_counted("scan") || !is_counted("reduce")) GTEST_SKIP() << "not on the simulated GPU";
  for (const char* line :
       {"work kogge-stone --n 64", "work kogge-stone --n 1024", "work brent-kung --n 64",
        "work brent-kung --n 2048", "work tree --n 256", "work tree --n 4096"}) {
    const json all = json_of(line);
    const json& results = all.at("rows")[0].at("results");
    ASSERT_EQ(all.at("counted").size(), 1u) << line;
    const json& figures = all.at("counted")[0].at("figures");
    EXPECT_EQ(figures.at("depth_in_barriers"), results.at("depth_in_barriers")) << line;
    // The last block of a sum of 4096 elements has 16 elements and adds 240 zeros.
    const double zeros = std::string_view(line) == "work tree --n 4096" ? 240 : 0;
    EXPECT_EQ(figures.at("additions").get<double>(), results.at("additions").get<double>() + zeros)
        << line;
  }
}

// Lines too long for a block, and lengths that are no power of two, have no rung with these steps.
TEST(Depth, WorkCountsNoOtherLengths) {
  for (const char* line : {"work kogge-stone --n 2048", "work kogge-stone --n 100",
                           "work brent-kung --n 32", "work tree --n 100"}) {
    const json all = json_of(line);
    EXPECT_TRUE(all.at("counted").empty()) << line;
    EXPECT_EQ(all.at("counted_by").size(), 1u) << line;
    EXPECT_FALSE(all.at("rows")[0].at("results").contains("depth_in_barriers")) << line;
  }
}

}  // namespace
}  // namespace rung::test
