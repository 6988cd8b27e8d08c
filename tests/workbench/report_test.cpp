// SPDX-License-Identifier: Apache-2.0
// rung report: contents of a ladder's tables.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fake_operator.hpp"

namespace rung::test {
namespace {

using nlohmann::json;

TEST(Report, TablesSayWhatARungGainsOverTheOneThatItImprovesOn) {
  const KnownMachine machine;
  json rows = json::array();
  const auto add = [&](const char* rung, double seconds, bool peer, const char* chosen) {
    rows.push_back({{"op", "gemm"},
                    {"rung", rung},
                    {"backend", "cuda"},
                    {"peer", peer},
                    {"problem", "f32 8x8x8"},
                    {"seconds", seconds},
                    {"rate", 1.0},
                    {"unit", "GFLOP/s"},
                    {"of_ceiling", nullptr},
                    {"vs_peer", nullptr},
                    {"threads", 1},
                    {"chosen", chosen},
                    {"note", ""}});
  };
  add("naive_coalesced", 3, false, "");
  add("shared_tile", 2, false, "");
  add("shared_tile_transposed", 8, false, "");
  add("outer_product", 0.5, false, "");
  add("vectorized", 0.25, false, "");
  add("cublas", 0.1, true, "");
  add("best", 0.1, false, "vectorized");
  const json result = {
      {"machine",
       {{"cpu", "a CPU"}, {"cores", 1}, {"isa", "x"}, {"date", "now"}, {"gpus", json::array()}}},
      {"rows", rows}};
  const std::string path = machine.folder + "/gains.json";
  std::ofstream(path) << result.dump();
  const Outcome table = run_rung({"report", path});
  ASSERT_EQ(table.code, 0) << table.err;
  for (const char* line :
       {"| rung | time | vs rung before |", "| naive_coalesced | 3.00 s |  |",
        "| shared_tile | 2.00 s | 1.50 |", "| shared_tile_transposed | 8.00 s | 0.25 |",
        "| outer_product | 500 ms | 4.00 |",  // its predecessor is shared_tile
        "| vectorized | 250 ms |  |",         // register_tile_2d was not timed
        "| *cublas* (peer) | 100 ms |  |", "| **best** (vectorized) | 100 ms |  |"}) {
    EXPECT_NE(table.out.find(line), std::string::npos) << line << '\n' << table.out;
  }
}

TEST(Report, RefusesAFilterThatChoosesNothing) {
  const KnownMachine machine;
  const std::string bench = machine.folder + "/bench.json";
  ASSERT_EQ(run_rung({"bench", "fake", "--backend", "cpu", "--rungs", "right", "--pairs", "1",
                      "--threads", "1", "--output", bench})
                .code,
            0);
  const std::string survey = machine.folder + "/survey.json";
  ASSERT_EQ(run_rung({"survey", "fake", "f32 4..64x4..64", "--backend", "cpu", "--count", "1",
                      "--json", survey})
                .code,
            0);
  const struct {
    const std::string& file;
    const char* only;
    const char* says;
  } cases[] = {{bench, "foo=9", "'foo=9' chooses no table; accepted: a problem, backend="},
               {bench, "threads=two", "'threads=two' chooses no table"},
               {bench, "backend=cpuu", "cpuu"},
               {survey, "foo=9", "'foo=9' chooses no table; accepted: worst"},
               {survey, "worst threads=1", "'threads=1' chooses no table"}};
  for (const auto& one : cases) {
    const Outcome outcome = run_rung({"report", one.file, "--only", one.only});
    EXPECT_EQ(outcome.code, 2) << one.only << outcome.out;
    EXPECT_NE(outcome.err.find(one.says), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run_rung({"report", bench, "--only", "f32 4x16 backend=cpu threads=1"}).code, 0);
  EXPECT_EQ(run_rung({"report", survey, "--only", "worst"}).code, 0);
}

TEST(Report, MessagesAboutMarkersHaveFileAndLine) {
  const KnownMachine machine;
  const std::string readme = machine.folder + "/README.md";
  const auto message_of = [&](const char* text) {
    std::ofstream(readme) << text;
    return run_rung({"report", "--into", readme, "--results", machine.folder}).err;
  };
  const std::string open = message_of("# A\n\n<!-- rung:table here/fake -->\nno end\n");
  EXPECT_NE(open.find(readme + ": line 3: the marker <!-- rung:table here/fake --> has no line "
                               "<!-- rung:end --> after it"),
            std::string::npos)
      << open;
  const std::string missing =
      message_of("# A\n<!-- rung:table nothing f32 1x1 -->\n<!-- rung:end -->\n");
  EXPECT_NE(missing.find(readme + ": line 2: the table nothing: "), std::string::npos) << missing;
}

}  // namespace
}  // namespace rung::test
