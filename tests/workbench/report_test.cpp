// SPDX-License-Identifier: Apache-2.0
// rung report: what the tables of a ladder say.
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
  add("vectorised", 0.25, false, "");
  add("cublas", 0.1, true, "");
  add("best", 0.1, false, "vectorised");
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
        "| outer_product | 500 ms | 4.00 |",  // it improves on shared_tile
        "| vectorised | 250 ms |  |",         // register_tile_2d was not timed
        "| *cublas* (peer) | 100 ms |  |", "| **best** (vectorised) | 100 ms |  |"}) {
    EXPECT_NE(table.out.find(line), std::string::npos) << line << '\n' << table.out;
  }
}

}  // namespace
}  // namespace rung::test
