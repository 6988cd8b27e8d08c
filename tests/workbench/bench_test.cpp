// SPDX-License-Identifier: Apache-2.0
// rung bench and rung report: the rows, the meaning of the ratio, and the tables of a README.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fake_operator.hpp"
#include "rung/workbench/bench.hpp"
#include "tests/support/stall_watch.hpp"

namespace rung::test {
namespace {

using nlohmann::json;

std::string content(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

const std::string timed_rungs = "right,one_unit,peer_two,peer_eight,best";

TEST(Bench, JsonHasTheDocumentedKeysAndRatio) {
  const KnownMachine machine;
  const Outcome outcome = run_rung({"bench", "fake", "f32", "4x16", "--backend", "cpu", "--rungs",
                                    timed_rungs, "--threads", "1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const json result = json::parse(outcome.out);
  EXPECT_TRUE(result.at("machine").at("cpu").is_string());
  std::map<std::string, json> rows;
  for (const json& row : result.at("rows")) {
    EXPECT_EQ(row.at("op"), "fake");
    EXPECT_EQ(row.at("backend"), "cpu");
    EXPECT_EQ(row.at("problem"), "f32 4x16");
    EXPECT_GT(row.at("seconds").get<double>(), 0);
    EXPECT_GE(row.at("spread").get<double>(), 0);
    EXPECT_EQ(row.at("unit"), "GB/s") << "one operation for eight bytes: memory binds";
    EXPECT_NEAR(row.at("rate").get<double>(), 8.0 * 64 / row.at("seconds").get<double>() * 1e-9,
                1e-6);
    // 512 bytes at 1e11 bytes per second.
    EXPECT_NEAR(row.at("of_ceiling").get<double>(), 512 / 1e11 / row.at("seconds").get<double>(),
                1e-6);
    rows[row.at("rung")] = row;
  }
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_TRUE(rows["peer_two"].at("peer"));
  EXPECT_FALSE(rows["one_unit"].at("peer"));
  EXPECT_EQ(rows["best"].at("chosen"), "right");
}

TEST(Bench, AShareOfTheCeilingIsNeverAboveIt) {
  EXPECT_EQ(workbench::share_shown(0.5), 0.5);
  EXPECT_EQ(workbench::share_shown(1.02), 1.0) << "ceilings spread by as much";
  EXPECT_TRUE(std::isnan(workbench::share_shown(1.2))) << "the data were in a cache";
  EXPECT_TRUE(std::isnan(workbench::share_shown(workbench::not_measured)));
}

// If a problem is compute-bound, its ceiling is measured in the race. The file's rate (one
// operation per second, below any real rate) only makes the problem compute-bound.
TEST(Bench, ArithmeticsCeilingTakesTurnsWithTheVersions) {
  const KnownMachine machine(1);
  const Outcome outcome = run_rung({"bench", "fake", "f32 4x16", "--backend", "cpu", "--rungs",
                                    "right,best", "--threads", "1", "--pairs", "3", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const json rows = json::parse(outcome.out).at("rows");
  EXPECT_EQ(rows.size(), 2u) << "the ceiling itself has no row";
  for (const json& row : rows) {
    EXPECT_EQ(row.at("unit"), "GFLOP/s");
    EXPECT_GT(row.at("of_ceiling").get<double>(), 0);
    EXPECT_LT(row.at("of_ceiling").get<double>(), 1);
  }
}

// One unit of work against two and eight. The machine is shared, so a measurement may be far off,
// but not five in a row, unless the ratio is wrong or other programs had the cores.
TEST(Bench, RatioIsToTheFastestPeer) {
  const KnownMachine machine;
  const StallWatch watch;
  std::string told;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Outcome outcome = run_rung({"bench", "fake", "--backend", "cpu", "--rungs",
                                      "one_unit,peer_two,peer_eight", "--threads", "1", "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    told = outcome.out;
    std::map<std::string, double> ratio;
    const json result = json::parse(told);
    for (const json& row : result.at("rows")) ratio[row.at("rung")] = row.at("vs_peer");
    if (ratio.at("peer_two") == 1.0 && std::abs(ratio.at("one_unit") - 2.0) < 0.5 &&
        std::abs(ratio.at("peer_eight") - 0.25) < 0.07) {
      return;
    }
  }
  if (watch.stalled() > 0.02) GTEST_SKIP() << "the machine was busy";
  FAIL() << told;
}

TEST(Bench, WrongRungIsNotTimedAndFailsTheRun) {
  const KnownMachine machine;
  const Outcome outcome = run_rung(
      {"bench", "fake", "--backend", "cpu", "--rungs", "right,wrong", "--pairs", "2", "--json"});
  EXPECT_EQ(outcome.code, 1);
  const json rows = json::parse(outcome.out).at("rows");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows.at(0).at("seconds").is_null());
  EXPECT_TRUE(rows.at(0).at("vs_peer").is_null()) << "no peer took part";
  EXPECT_TRUE(rows.at(1).at("seconds").is_null());
  EXPECT_NE(rows.at(1).at("note").get<std::string>().find("FAILED"), std::string::npos);
}

// By default it would be timed in three rounds.
TEST(Bench, ASlowVersionIsTimedAsOftenAsAskedFor) {
  const KnownMachine machine;
  const Outcome outcome = run_rung({"bench", "fake", "f32 3x41", "--backend", "cpu", "--rungs",
                                    "slow_at_times", "--threads", "1", "--pairs", "4", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const json rows = json::parse(outcome.out).at("rows");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GT(rows.at(0).at("seconds").get<double>(), 0.4);
  EXPECT_EQ(rows.at(0).at("rounds"), 4);
}

TEST(Bench, ThreadsListMakesARowEach) {
  const KnownMachine machine;
  const Outcome outcome = run_rung({"bench", "fake", "--backend", "cpu", "--rungs", "right",
                                    "--threads", "1,2", "--pairs", "1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json rows = json::parse(outcome.out).at("rows");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.at(0).at("threads"), 1);
  EXPECT_EQ(rows.at(1).at("threads"), 2);
}

TEST(Bench, TellsHowManyThreadsAVersionUses) {
  const KnownMachine machine;
  const Outcome outcome = run_rung({"bench", "gemm", "f32 256x256x256", "--backend", "cpu",
                                    "--rungs", "simd_tile,threads", "--threads", "2", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json rows = json::parse(outcome.out).at("rows");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.at(0).at("threads"), 2);
  EXPECT_EQ(rows.at(0).at("threads_used"), 1) << "simd_tile has one thread";
  // On a busy machine no second core may be free.
  EXPECT_GE(rows.at(1).at("threads_used"), 1);
  EXPECT_LE(rows.at(1).at("threads_used"), 2);
}

TEST(Bench, TextFitsThePageAndNamesThePeersVersion) {
  const KnownMachine machine;
  const Outcome outcome =
      run_rung({"bench", "fake", "--backend", "cpu", "--rungs", timed_rungs, "--pairs", "1"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("Fake 1.0"), std::string::npos);
  EXPECT_NE(outcome.out.find("picks right"), std::string::npos);
  expect_fits_the_page(outcome.out);
  EXPECT_EQ(outcome.out.find("5 versions on 1 problem: takes about"), 0u) << outcome.out;
  EXPECT_EQ(outcome.err, "") << "the progress line is for terminals";
}

// The simulated GPU is checked by another command.
TEST(Bench, TimesWhatWasAskedForAndSimulatesNothing) {
  const KnownMachine machine;
  const Outcome outcome = run_rung({"bench", "gemm", "f32 8x8x8", "--pairs", "1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json rows = json::parse(outcome.out).at("rows");
  EXPECT_GT(rows.size(), 2u);
  for (const json& row : rows) {
    EXPECT_NE(row.at("backend"), "simt") << row;
    EXPECT_EQ(row.at("problem"), "f32 8x8x8");
  }
  if (!available(Backend::simt)) return;
  const Outcome large = run_rung({"bench", "gemm", "f32 512x512x512", "--backend", "simt"});
  EXPECT_EQ(large.code, 3) << large.out;
  EXPECT_NE(large.err.find("takes the simulated GPU minutes"), std::string::npos) << large.err;
}

TEST(Bench, SaysWhyThereIsNothingToTime) {
  const KnownMachine machine;
  const Outcome cuda = run_rung({"bench", "transfer"});
  if (!available(Backend::cuda)) {
    EXPECT_EQ(cuda.code, 3) << cuda.out;
    EXPECT_EQ(cuda.out, "");
    const bool is_left_out = cuda.err.find("configure it with") != std::string::npos;
    EXPECT_TRUE(is_left_out || cuda.err.find("nothing to time here") != std::string::npos)
        << cuda.err;
  }
  const Outcome unsupported =
      run_rung({"bench", "fake", "--backend", "cpu", "--rungs", "columns", "--pairs", "1"});
  EXPECT_EQ(unsupported.code, 3);
  EXPECT_NE(unsupported.out.find("no version of it takes this problem here"), std::string::npos);
  EXPECT_EQ(unsupported.out.find("takes about"), std::string::npos) << unsupported.out;
}

TEST(Bench, ABusyMachineIsNoticedByTheSpread) {
  const auto tables = [](std::vector<double> spreads, int rounds) {
    workbench::BenchTable table;
    for (const double spread : spreads) {
      workbench::BenchRow row;
      row.spread = spread;
      row.rounds = rounds;
      table.rows.push_back(row);
    }
    return std::vector<workbench::BenchTable>{table};
  };
  EXPECT_EQ(workbench::busy_text(tables({0.01, 0.02, 0.9}, 15)), "") << "one version alone";
  EXPECT_EQ(workbench::busy_text(tables({}, 15)), "");
  EXPECT_EQ(workbench::busy_text(tables({0, 0, 0}, 1)), "") << "one time has no spread";
  // As many rounds as slow versions, or --pairs 3, have.
  EXPECT_NE(workbench::busy_text(tables({0.3, 0.4, 0.5}, 3)).find("40 %"), std::string::npos);
  const std::string one = workbench::busy_text(tables({0.01, 0.02, 150.421}, 3));
  EXPECT_NE(one.find("spread by 15042 %"), std::string::npos) << one;
  EXPECT_EQ(one.find("The machine was busy"), std::string::npos) << one;
  const std::string busy = workbench::busy_text(tables({0.02, 0.3, 0.4}, 15));
  EXPECT_NE(busy.find("The machine was busy"), std::string::npos) << busy;
  EXPECT_NE(busy.find("30 %"), std::string::npos) << busy;
}

TEST(Report, FromMeasurementToReadmeAndBack) {
  const KnownMachine machine;
  const std::string results = machine.folder + "/results";
  std::filesystem::create_directories(results + "/here");
  ASSERT_EQ(run_rung({"bench", "fake", "--backend", "cpu", "--rungs", timed_rungs, "--pairs", "1",
                      "--threads", "1", "--output", results + "/here/fake.json"})
                .code,
            0);
  const Outcome table = run_rung({"report", "--markdown", results + "/here/fake.json"});
  EXPECT_EQ(table.code, 0);
  EXPECT_NE(table.out.find("| *peer_two* (peer) |"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("**best** (right)"), std::string::npos) << table.out;
  const Outcome one =
      run_rung({"report", "--only", "rung=best", "--markdown", results + "/here/fake.json"});
  EXPECT_EQ(one.code, 0);
  EXPECT_NE(one.out.find("| `f32 4x16` | 1 |"), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("| right | peer_"), std::string::npos) << one.out;
  // Rows of a GPU have no thread count.
  std::string on_gpu = content(results + "/here/fake.json");
  for (std::size_t at = 0; (at = on_gpu.find("\"backend\"", at)) != std::string::npos; ++at) {
    on_gpu.replace(on_gpu.find("\"cpu\"", at), 5, "\"simt\"");
  }
  std::ofstream(results + "/here/gpu.json") << on_gpu;
  const Outcome gpu =
      run_rung({"report", "--only", "rung=best", "--markdown", results + "/here/gpu.json"});
  EXPECT_EQ(gpu.code, 0) << gpu.err;
  EXPECT_EQ(gpu.out.find("threads"), std::string::npos) << gpu.out;
  EXPECT_EQ(gpu.out.find("| `f32 4x16` | 1 |"), std::string::npos) << gpu.out;

  const std::string readme = machine.folder + "/README.md";
  const std::string before =
      "# Fake\nBetween `<!-- rung:table none -->` and `<!-- rung:end -->` in a line there is "
      "none.\n"
      "<!-- rung:table here/fake f32 4x16 threads=1 -->\nstale\n"
      "<!-- rung:end -->\nThe end.\n";
  std::ofstream(readme) << before;
  const std::vector<std::string> update{"report", "--into", readme, "--results", results};
  std::vector<std::string> check = update;
  check.emplace_back("--check");
  EXPECT_EQ(run_rung(check).code, 1);
  EXPECT_EQ(content(readme), before) << "--check writes nothing";
  EXPECT_EQ(run_rung(update).code, 0);
  EXPECT_EQ(run_rung(check).code, 0);
  const std::string after = content(readme);
  EXPECT_EQ(after.find("stale"), std::string::npos);
  EXPECT_NE(after.find(table.out + "<!-- rung:end -->\nThe end.\n"), std::string::npos) << after;
}

TEST(Report, ErrorsNameWhatIsWrong) {
  const KnownMachine machine;
  const std::string path = machine.folder + "/bad.json";
  std::ofstream(path) << "[1, 2";
  const Outcome bad = run_rung({"report", path});
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find(path), std::string::npos) << bad.err;
  EXPECT_EQ(run_rung({"report", machine.folder + "/none.json"}).code, 2);
  EXPECT_EQ(run_rung({"report"}).code, 2);
  const std::string readme = machine.folder + "/README.md";
  const struct {
    const char* content;
    const char* says;
  } damaged[] = {
      {"", "the file is empty; accepted: what `rung bench --output` or `rung survey --json` wri"},
      {"{\n  \"rows\": [\n    1, 2", "cut off: it ends within line 3, at byte 22"},
      {"{\n  \"rows\": [1,]\n}", "line 2 is no JSON from byte 16 of the file on, ']'"},
      {"{\"rows\": [{}]}", "'backend' is missing"},
      {"{\"rows\": [{\"backend\": 5}]}", "of another kind: type must be string, but is number"},
      {"{\"rows\": 5}", "a value is of another kind: "},
      {"{}", "'rows' is missing"},
  };
  for (const auto& one : damaged) {
    std::ofstream(path) << one.content;
    std::ofstream(readme) << "<!-- rung:table bad -->\n<!-- rung:end -->\n";
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"report", path},
          {"report", "--into", readme, "--results", machine.folder}}) {
      const Outcome outcome = run_rung(words);
      EXPECT_EQ(outcome.code, 2) << one.content;
      EXPECT_NE(outcome.err.find(one.says), std::string::npos) << one.content << outcome.err;
      EXPECT_NE(outcome.err.find("bad"), std::string::npos) << outcome.err;
      EXPECT_EQ(outcome.err.find("json.exception"), std::string::npos) << outcome.err;
    }
  }
  std::ofstream(readme) << "<!-- rung:table here/fake -->\nno end\n";
  EXPECT_EQ(run_rung({"report", "--into", readme}).code, 2);
  std::ofstream(readme) << "no marker\n";
  const Outcome outcome = run_rung({"report", "--into", readme});
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_NE(outcome.err.find("'<!-- rung:table '"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace rung::test
