// SPDX-License-Identifier: Apache-2.0
// rung explain's bounds: the order of the rungs by bound against the order measured on an H200, and
// single roofs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "fake_operator.hpp"
#include "rung/bench/bound.hpp"
#include "rung/workbench/selection.hpp"
#include "tests/support/long_test.hpp"

namespace rung::test {
namespace {

using bench::bound_of;
using bench::CountedWork;
using bench::GpuPace;
using bench::GridSize;
using bench::Roof;
using nlohmann::json;

/// Returns 0 if a and b differ by at most the fraction `tie` of the larger one; else -1 or 1.
int order(double a, double b, double tie) {
  if (std::abs(a - b) <= tie * std::max(a, b)) return 0;
  return a < b ? -1 : 1;
}

struct Agreement {
  double tau = 0;  // tau-b: tied pairs are in neither order
  int pairs = 0;   // pairs that differ in bound and in time
};

/// Returns Kendall's tau-b: pairs in the same order minus pairs in opposite orders, over the
/// geometric mean of the pairs with different bounds and the pairs with different times.
Agreement kendall(const std::vector<double>& bounds, const std::vector<double>& measured,
                  double measured_tie) {
  constexpr double bound_tie = 1e-3;
  Agreement result;
  double sum = 0, bounds_differ = 0, measured_differ = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int in_bounds = order(bounds[i], bounds[j], bound_tie);
      const int in_measured = order(measured[i], measured[j], measured_tie);
      sum += in_bounds * in_measured;
      bounds_differ += in_bounds != 0 ? 1 : 0;
      measured_differ += in_measured != 0 ? 1 : 0;
      result.pairs += in_bounds * in_measured != 0 ? 1 : 0;
    }
  }
  const double pairs = std::sqrt(bounds_differ * measured_differ);
  result.tau = pairs > 0 ? sum / pairs : 0;
  return result;
}

TEST(Kendall, TiesCountInNeitherOrder) {
  EXPECT_DOUBLE_EQ(kendall({1, 2, 3}, {4, 5, 6}, 0).tau, 1);
  EXPECT_DOUBLE_EQ(kendall({1, 2, 3}, {6, 5, 4}, 0).tau, -1);
  // Pairs that differ: 2 by bound, 3 by time; no pair in opposite orders.
  EXPECT_DOUBLE_EQ(kendall({1, 2, 2}, {4, 5, 6}, 0).tau, 2 / std::sqrt(6));
  EXPECT_DOUBLE_EQ(kendall({1, 2}, {100, 101}, 0.02).tau, 0);
}

CountedWork some_work() {
  CountedWork work;
  work.blocks = 300;
  work.warps_per_block = 8;
  work.blocks_per_sm = 2;
  work.bytes = 1e6;
  work.operations = 1e9;
  return work;
}

GpuPace some_pace() {
  return {.multiprocessors = 100,
          .cycles_per_second = 1e9,
          .bytes_per_second = 1e12,
          .operations_per_second = 1e13};
}

TEST(Bound, TheSlowestRoofBinds) {
  CountedWork work = some_work();
  const GpuPace pace = some_pace();
  EXPECT_EQ(bound_of(work, pace, GridSize::large).by, Roof::arithmetic);
  EXPECT_DOUBLE_EQ(bound_of(work, pace, GridSize::large).total, 1e-4);
  work.shared_wavefronts = 2e7;  // 2e5 cycles of each SM
  EXPECT_EQ(bound_of(work, pace, GridSize::large).by, Roof::shared_memory);
  EXPECT_DOUBLE_EQ(bound_of(work, pace, GridSize::large).total, 2e-4);
  work.lines = 3e7;
  EXPECT_EQ(bound_of(work, pace, GridSize::large).by, Roof::l1);
  work.instructions = 4 * 4e7;  // four schedulers
  EXPECT_EQ(bound_of(work, pace, GridSize::large).by, Roof::issue);
  EXPECT_DOUBLE_EQ(bound_of(work, pace, GridSize::large).total, 4e-4);
}

TEST(Bound, ALastWaveThatIsNotFullCostsTime) {
  CountedWork work = some_work();
  work.shared_wavefronts = 3e8;
  const GpuPace pace = some_pace();
  // 3 blocks for each of 100 SMs; then 4 for one of them.
  EXPECT_DOUBLE_EQ(bound_of(work, pace, GridSize::as_is).total, 3e-3);
  work.blocks = 301;
  EXPECT_DOUBLE_EQ(bound_of(work, pace, GridSize::as_is).total, 3e-3 * 400 / 301);
  EXPECT_DOUBLE_EQ(bound_of(work, pace, GridSize::large).total, 3e-3);
  work.blocks = 1;
  EXPECT_DOUBLE_EQ(bound_of(work, pace, GridSize::as_is).total, 0.3);
}

TEST(Bound, LatenciesFollowEachOtherInEachWave) {
  CountedWork work = some_work();
  work.blocks = 401;  // 200 at once: 3 waves
  work.memory_trips = 401;
  work.barriers = 2 * 401;
  GpuPace pace = some_pace();
  pace.latency = {.block = 100, .memory = 500, .barrier = 10, .barrier_per_warp = 2};
  const bench::Bound bound = bound_of(work, pace, GridSize::as_is);
  EXPECT_DOUBLE_EQ(bound.waves, 401.0 / 200);
  EXPECT_DOUBLE_EQ(bound.of(Roof::latency), 3 * (100 + 500 + 2 * (10 + 8 * 2)) / 1e9);
}

TEST(Bound, KernelsRunOneAfterTheOther) {
  CountedWork first = some_work(), second = some_work();
  second.shared_wavefronts = 1e9;
  const GpuPace pace = some_pace();
  bench::Bound both;
  both += bound_of(first, pace, GridSize::large);
  both += bound_of(second, pace, GridSize::large);
  EXPECT_DOUBLE_EQ(both.total, 1e-4 + 1e-2);
  EXPECT_EQ(both.by, Roof::shared_memory);
}

#if !defined(__SANITIZE_ADDRESS__)  // under it kernels have no hooks

/// Returns the median seconds of the CUDA rungs on this problem.
std::map<std::string, double> measured_seconds(const std::string& op, const std::string& problem) {
  std::ifstream file(std::string(RUNG_SOURCE_DIR "/results/h200/") + op + ".json");
  std::map<std::string, double> seconds;
  const json results = json::parse(file);
  for (const json& row : results.at("rows")) {
    const bool rung =
        row.at("peer") == false && row.at("rung") != "best" && row.at("backend") == "cuda";
    if (rung && row.at("problem") == problem) seconds[row.at("rung")] = row.at("seconds");
  }
  return seconds;
}

double explained_bound(const std::string& rung, const std::string& counted, const std::string& at) {
  const Outcome outcome = run_rung({"explain", rung, counted, "--at", at, "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  if (outcome.code != 0) return 0;
  return json::parse(outcome.out).at("rungs").at(0).at("bound").at("seconds").get<double>();
}

struct Ladder {
  const char *name, *op, *counted, *measured;
  int rungs;
  // Rungs that select another tile at the measured size than at the counted size, and rungs that
  // were rewritten after the measurement.
  std::vector<std::string_view> left_out = {};
};
class ExplainOrder : public testing::TestWithParam<Ladder> {};

TEST_P(ExplainOrder, IsTheMeasuredOne) {
  RUNG_LONG_TEST();
  const Ladder& ladder = GetParam();
  if (!workbench::why_no_operator(ladder.op).empty()) GTEST_SKIP() << "not in this build";
  std::vector<double> bounds, seconds;
  std::string table;
  for (const auto& [rung, time] : measured_seconds(ladder.op, ladder.measured)) {
    if (std::count(ladder.left_out.begin(), ladder.left_out.end(), rung) != 0) continue;
    const double bound =
        explained_bound(std::string(ladder.op) + "/" + rung, ladder.counted, ladder.measured);
    bounds.push_back(bound);
    seconds.push_back(time);
    table += rung + ": bound " + std::to_string(bound * 1e3) + " ms, measured " +
             std::to_string(time * 1e3) + " ms\n";
    EXPECT_LE(bound, time) << rung << ": no bound";
  }
  EXPECT_EQ(bounds.size(), static_cast<std::size_t>(ladder.rungs));
  // Times that differ by less than 5 % count as equal.
  const Agreement agreement = kendall(bounds, seconds, 0.05);
  RecordProperty("tau", std::to_string(agreement.tau));
  RecordProperty("tau_without_ties_of_times", std::to_string(kendall(bounds, seconds, 0).tau));
  EXPECT_GE(agreement.tau, 0.8) << table;
  EXPECT_GE(agreement.pairs, ladder.rungs) << "ties only";
}

INSTANTIATE_TEST_SUITE_P(
    Operators, ExplainOrder,
    testing::Values(Ladder{"gemm_1024",
                           "gemm",
                           "f32 128x128x64",
                           "f32 1024x1024x1024",
                           12,
                           {"register_tile_2d", "warp_tile"}},
                    Ladder{"gemm_4096",
                           "gemm",
                           "f32 128x128x64",
                           "f32 4096x4096x4096",
                           10,
                           {"split_k", "simt_top", "register_tile_2d", "warp_tile"}},
                    Ladder{"transpose", "transpose", "f32 256x256", "f32 8192x8192", 9},
                    Ladder{"reduce", "reduce", "f32 65536", "f32 268435456", 12},
                    Ladder{"scan", "scan", "f32 65536", "f32 268435456", 7}),
    [](const auto& one) { return std::string(one.param.name); });

#endif

}  // namespace
}  // namespace rung::test
