// SPDX-License-Identifier: Apache-2.0
// rung occupancy and rung amdahl, against published answers, and with invalid input.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fake_operator.hpp"
#include "rung/bench/amdahl.hpp"
#include "rung/bench/occupancy.hpp"
#include "rung/bench/roofline.hpp"

namespace rung::test {
namespace {

using bench::Occupancy;
using nlohmann::json;

Occupancy occupancy(int capability, const bench::BlockNeeds& block) {
  return bench::occupancy(bench::find_multiprocessor(capability), block);
}

// --- rows of the quiz ----------------------------------------------------------------------------

TEST(Quiz, NineTenthsSpedUpAThousandTimesGive9Point91) {  // row 1
  EXPECT_NEAR(bench::amdahl_speedup(0.9, 1000), 9.91, 0.005);
}

TEST(Quiz, NinetySixThreadsReachBothLimits) {  // row 8: compute capability 8.6 has these limits
  const Occupancy one = occupancy(86, {.threads = 96});
  EXPECT_EQ(one.blocks, 16);
  EXPECT_EQ(one.warps * 32, 1536);
  EXPECT_EQ(one.limited_by(), (std::vector<std::string>{"warps", "blocks"}));
  for (const bench::BlockSize& size :
       bench::every_block_size(bench::find_multiprocessor(86), {.threads = 0})) {
    EXPECT_EQ(size.occupancy.limited_by().size() == 2, size.threads == 96) << size.threads;
  }
}

TEST(Quiz, ActiveWarpsOnComputeCapability13) {  // row 9: registers per block shared by its threads
  EXPECT_EQ(occupancy(13, {160, 7, 7 << 10}).warps, 10);
  EXPECT_EQ(occupancy(13, {224, 28, 8 << 10}).warps, 14);
  EXPECT_EQ(occupancy(13, {288, 32, 10 << 10}).warps, 9);
  EXPECT_EQ(occupancy(13, {96, 22, 4 << 10}).warps, 12);
}

TEST(Quiz, ABlockOf576ThreadsFitsThreeTimes) {  // row 10; volta reserves nothing
  constexpr int tile_bytes = 24 * 24 * 4;
  const Occupancy one = occupancy(70, {.threads = 24 * 24, .shared_bytes = tile_bytes});
  EXPECT_EQ(one.blocks, 3);
  EXPECT_EQ(one.shared_bytes_per_block * one.blocks, 6912);
}

TEST(Quiz, Reuse32On696GigabytesASecondIsBoundByMemory) {  // row 21
  bench::Ceiling a40;
  a40.bytes_per_second = 696e9;
  a40.operations_per_second = 37.4e12;
  // A multiply-add reads two floats, each of which serves 32 multiply-adds.
  const Cost cost{.bytes = 8.0 / 32, .operations = 2};
  EXPECT_NEAR(cost.operations / bench::seconds_at_best(cost, a40), 5568e9, 1e3);
  EXPECT_TRUE(bench::bound_by_memory(cost, a40));
}

// --- occupancy -----------------------------------------------------------------------------------

struct Known {
  int capability;
  bench::BlockNeeds block;
  int blocks;
};
class Published : public testing::TestWithParam<Known> {};

TEST_P(Published, BlocksAMultiprocessor) {
  const Known& one = GetParam();
  EXPECT_EQ(occupancy(one.capability, one.block).blocks, one.blocks);
}

// Calculated by hand from the published limits; each row reaches another limit.
INSTANTIATE_TEST_SUITE_P(
    Rows, Published,
    testing::Values(Known{90, {1024, 32, 0}, 2}, Known{90, {256, 255, 0}, 1},
                    Known{90, {32, 16, 0}, 32},         // maximum number of blocks
                    Known{90, {128, 0, 227 << 10}, 1},  // all of the shared memory
                    Known{90, {128, 0, 113 << 10}, 2},  // 114 KiB with the reserved KiB: two blocks
                    Known{90, {128, 0, (113 << 10) + 1}, 1},  // one byte too many for two blocks
                    // 40 registers: 1280 per warp, 12 warps per 16384 registers: 48; 6 blocks of 8.
                    Known{80, {256, 40, 0}, 6},
                    // 41: 1536 per warp, 10 per partition: 40 warps; 5 blocks.
                    Known{80, {256, 41, 0}, 5},
                    // Blocks of 7 warps: 42 warps would fit if registers were not partitioned.
                    Known{80, {224, 41, 0}, 5}, Known{75, {256, 32, 0}, 4},
                    Known{86, {1024, 32, 0}, 1}, Known{89, {64, 24, 0}, 24},
                    Known{120, {512, 32, 50 << 10}, 1},
                    Known{37, {256, 63, 0}, 8},  // 128 K registers
                    Known{35, {256, 63, 0}, 4}, Known{20, {192, 20, 0}, 8},
                    // 2.0: 21 registers, 704 per warp in units of 64: 23 per partition, 46.
                    Known{20, {192, 21, 0}, 7}));

TEST(Occupancy, CapabilitiesAreReadAsNvccSpellsThem) {
  for (const char* text : {"9.0", "9", "90", "sm_90", "sm_90a", "compute_90"}) {
    EXPECT_EQ(bench::parse_capability(text), 90) << text;
  }
  EXPECT_EQ(bench::parse_capability("sm_86"), 86);
  EXPECT_EQ(bench::parse_capability("86"), 86);
  EXPECT_EQ(bench::parse_capability("12"), 120);
  EXPECT_EQ(bench::parse_capability("120"), 120);
  EXPECT_EQ(bench::parse_capability("sm_100f"), 100);
  for (const char* text : {"", "sm_", "a", "9.", ".9", "9.0.1", "sm90", "-9", "h100"}) {
    EXPECT_THROW(bench::parse_capability(text), Error) << text;
  }
}

TEST(Occupancy, WhatIsRefusedIsRefusedBeforeAnythingIsPrinted) {
  const Outcome outcome = run_rung({"occupancy", "--threads", "2000"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
}

TEST(Amdahl, AMeasuredSpeedUpTakesTheOneNumberForProcessors) {
  const Outcome outcome = run_rung({"amdahl", "--measured", "5.6", "8"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, run_rung({"amdahl", "--measured", "5.6", "-n", "8"}).out);
  EXPECT_NE(run_rung({"amdahl", "--help"}).out.find("-n, --processors NUMBER"), std::string::npos);
}

TEST(Occupancy, RefusesWhatNoLaunchMayHave) {
  EXPECT_THROW(occupancy(90, {.threads = 1025}), Error);
  EXPECT_THROW(occupancy(13, {.threads = 513}), Error);
  EXPECT_THROW(occupancy(90, {.threads = 0}), Error);
  EXPECT_THROW(occupancy(90, {.threads = 1024, .registers = 65}), Error);
  EXPECT_THROW(occupancy(90, {.threads = 32, .registers = 256}), Error);
  EXPECT_THROW(occupancy(86, {.threads = 32, .shared_bytes = 100 << 10}), Error);
  EXPECT_THROW(bench::find_multiprocessor(40), Error);
}

// 5,120 registers per block, and 48 such blocks in 65,536: both numbers are right, but look wrong.
TEST(Occupancy, ExplainsHowRegistersAreAllocated) {
  const std::string text = run_rung({"occupancy", "--threads", "32", "--registers", "40"}).out;
  EXPECT_NE(text.find("in units of 256: 40 x 32 take 1,280."), std::string::npos) << text;
  EXPECT_NE(text.find("48 in all: 48 blocks of 1 warp."), std::string::npos) << text;
  EXPECT_NE(text.find("The 5,120 per"), std::string::npos) << text;
  const Outcome own = run_rung(
      {"occupancy", "--sm", "warps=64,registers=64K", "--threads", "32", "--registers", "40"});
  EXPECT_EQ(own.out.find("in units of"), std::string::npos) << "nothing is rounded\n" << own.out;
  const Outcome full = run_rung({"occupancy", "--threads", "256", "--registers", "16"});
  EXPECT_EQ(full.out.find("in units of"), std::string::npos) << "no block less\n" << full.out;
}

TEST(Occupancy, TooManyRegistersAreTakenApart) {
  const Outcome outcome = run_rung({"occupancy", "--threads", "1024", "--registers", "72"});
  EXPECT_EQ(outcome.code, 2);
  for (const char* part : {"1024 threads with 72 each are 32 warps with 2304", "73728 in all",
                           "at most 65536", "accepted: up to 64 registers per thread"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << '\n' << outcome.err;
  }
}

TEST(Occupancy, JsonAndText) {
  const Outcome one = run_rung({"occupancy", "--compute-capability", "8.6", "--threads", "96",
                                "--registers", "32", "--shared", "1K", "--json"});
  ASSERT_EQ(one.code, 0) << one.err;
  const json result = json::parse(one.out);
  EXPECT_EQ(result.at("compute_capability"), "8.6");
  EXPECT_EQ(result.at("blocks"), 16);
  EXPECT_EQ(result.at("warps"), 48);
  EXPECT_EQ(result.at("active_threads"), 1536);
  EXPECT_EQ(result.at("occupancy"), 1.0);
  EXPECT_EQ(result.at("limits").at("registers"), 21);
  EXPECT_EQ(result.at("limits").at("shared_memory"), 50);

  const Outcome sweep = run_rung({"occupancy", "--compute-capability", "1.3", "--json"});
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  EXPECT_EQ(json::parse(sweep.out).at("sweep").size(), 16u) << "32 to 512 threads";

  const Outcome text = run_rung({"occupancy", "--threads", "200", "--shared", "100K"});
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* says : {"  shared memory\n", "24 lanes", "Another size of block"}) {
    EXPECT_NE(text.out.find(says), std::string::npos) << says << "\n" << text.out;
  }
  expect_fits_the_page(text.out);
  const Outcome table = run_rung({"occupancy", "--registers", "16"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("most, 100 %: 64, 128"), std::string::npos) << table.out;
  expect_fits_the_page(table.out);
}

// --- amdahl --------------------------------------------------------------------------------------

TEST(Amdahl, LawsAgreeWithTheirTextbooks) {
  EXPECT_NEAR(bench::amdahl_limit(0.95), 20, 1e-12);
  EXPECT_DOUBLE_EQ(bench::amdahl_speedup(1, 7), 7);
  EXPECT_DOUBLE_EQ(bench::amdahl_speedup(0, 7), 1);
  EXPECT_DOUBLE_EQ(bench::gustafson_speedup(0.9, 100), 90.1);
  EXPECT_NEAR(bench::karp_flatt_serial(bench::amdahl_speedup(0.8, 12), 12), 0.2, 1e-12);
}

TEST(Amdahl, JsonAndText) {
  const Outcome outcome = run_rung({"amdahl", "90%", "1000", "8", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_NEAR(result.at("limit").get<double>(), 10, 1e-12);
  ASSERT_EQ(result.at("rows").size(), 2u);
  EXPECT_NEAR(result.at("rows")[0].at("speedup").get<double>(), 9.91, 0.005);
  EXPECT_NEAR(result.at("rows")[1].at("gustafson").get<double>(), 7.3, 1e-12);

  EXPECT_TRUE(json::parse(run_rung({"amdahl", "1", "--json"}).out).at("limit").is_null());
  const Outcome text = run_rung({"amdahl", "0.5"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("never more than 2 times"), std::string::npos) << text.out;
  expect_fits_the_page(text.out);
  const Outcome measured = run_rung({"amdahl", "--measured", "4", "-n", "8", "--json"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_NEAR(json::parse(measured.out).at("serial").get<double>(), 1.0 / 7, 1e-12);
}

// --- wrong input ---------------------------------------------------------------------------------

TEST(Calculators, WrongInputEndsWith2AndSaysWhatIsAccepted) {
  const struct {
    std::vector<std::string> words;
    const char* says;
  } cases[] = {
      {{"occupancy", "--compute-capability", "4.0"}, "3.7, 5.0"},
      {{"occupancy", "--compute-capability", "9.0x"}, "9.0"},
      {{"occupancy", "--threads", "2000"}, "at most 1024"},
      {{"occupancy", "--threads", "0"}, "--threads"},
      {{"occupancy", "--threads", "many"}, "--threads"},
      {{"occupancy", "--registers", "300"}, "at most 255"},
      {{"occupancy", "--registers", "-1"}, "negative"},
      {{"occupancy", "--shared", "300K"}, "at most 232448"},
      {{"occupancy", "--shared", "-1"}, "48K"},
      {{"occupancy", "--shared", "1.5"}, "whole number"},
      {{"occupancy", "--shared", "9 parsecs"}, "48K"},
      {{"occupancy", "--blocks", "2"}, "--blocks"},
      {{"amdahl"}, "90%"},
      {{"amdahl", "1.2"}, "0 to 1"},
      {{"amdahl", "90"}, "0 to 1"},
      {{"amdahl", "most"}, "0 to 1"},
      {{"amdahl", "0.9", "0"}, "processors"},
      {{"amdahl", "0.9", "two"}, "processors"},
      {{"amdahl", "--measured", "2"}, "one number of processors"},
      {{"amdahl", "--measured", "-2", "-n", "4"}, "--measured"},
      {{"amdahl", "0.9", "4", "--measured", "2"}, "accepted with --measured"},
  };
  for (const auto& one : cases) {
    const Outcome outcome = run_rung(one.words);
    std::string words;
    for (const std::string& word : one.words) words += word + " ";
    EXPECT_EQ(outcome.code, 2) << words << outcome.out;
    EXPECT_NE(outcome.err.find(one.says), std::string::npos) << words << ": " << outcome.err;
  }
}

}  // namespace
}  // namespace rung::test
