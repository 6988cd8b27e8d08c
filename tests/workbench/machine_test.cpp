// SPDX-License-Identifier: Apache-2.0
// Stored measurements of a machine, and the handling of a damaged file.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fake_operator.hpp"
#include "rung/bench/cpu_rates.hpp"
#include "rung/bench/machine.hpp"

namespace rung::test {
namespace {

using nlohmann::json;

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Noise found by two successive measurements.
double next_noise[2] = {};
int measurements = 0;
void measure_as_told(bench::Machine& machine, const bench::MachineProgress&) {
  machine.noise = next_noise[std::min(measurements++, 1)];
  machine.arithmetic = {{"scalar", "f32", 1, 1e9}};
  machine.bandwidth = {{"L1", "read", 1, 1e6, 1e9}};
}

TEST(Machine, ABusyMachineIsMeasuredAgainAndNeverReplacesAQuietOne) {
  const KnownMachine known;  // its file is quiet
  const auto measure = [](bool refresh, double first, double second) {
    next_noise[0] = first;
    next_noise[1] = second;
    measurements = 0;
    return bench::known_machine(
        refresh, [](std::string_view) {}, measure_as_told);
  };
  EXPECT_FALSE(measure(false, 0.5, 0.5).noisy());
  EXPECT_EQ(measurements, 0) << "it is remembered";
  EXPECT_DOUBLE_EQ(measure(true, 0.5, 0.4).noise, 0.4) << "the quieter of two";
  EXPECT_EQ(measurements, 2);
  EXPECT_FALSE(measure(false, 0.5, 0.5).noisy()) << "what was quiet is still remembered";
  EXPECT_DOUBLE_EQ(measure(true, 0.5, 0.02).noise, 0.02);
  EXPECT_DOUBLE_EQ(measure(true, 0.03, 0.5).noise, 0.03);
  EXPECT_EQ(measurements, 1) << "quiet at once";
  EXPECT_DOUBLE_EQ(measure(false, 0.5, 0.5).noise, 0.03);

  std::ofstream(bench::machine_cache_path()) << "damaged";
  EXPECT_DOUBLE_EQ(measure(false, 0.6, 0.7).noise, 0.6);
  const bench::Machine marked = measure(false, 0, 0);
  EXPECT_EQ(measurements, 0) << "better than nothing, but";
  EXPECT_TRUE(marked.noisy()) << "as what it is";
  const Outcome told =
      run_rung({"bench", "fake", "--backend", "cpu", "--rungs", "right", "--pairs", "1"});
  EXPECT_NE(told.out.find("while the machine was busy"), std::string::npos) << told.out;
}

/// Number of measurements of the machine, and the messages about it.
struct Measured {
  int times = 0;
  std::string err;
};
Measured measured_quietly() {
  next_noise[0] = next_noise[1] = 0;
  measurements = 0;
  testing::internal::CaptureStderr();
  static_cast<void>(bench::known_machine(
      false, [](std::string_view) {}, measure_as_told));
  return {measurements, testing::internal::GetCapturedStderr()};
}

TEST(Machine, ADamagedCacheIsToldOfOnceAndMeasuredAgain) {
  const KnownMachine known;
  const std::string path = bench::machine_cache_path();
  const std::string good = text_of(path);
  json zero = json::parse(good);
  zero.at("arithmetic").at(0).at("operations_per_second") = 0;
  json negative = json::parse(good);
  negative.at("bandwidth").at(2).at("bytes_per_second") = -1e9;
  json without = json::parse(good);
  without.at("bandwidth") = json::array();
  json null = json::parse(good);
  null.at("noise") = nullptr;
  EXPECT_EQ(measured_quietly().times, 0) << "it is good";
  for (const std::string& text :
       {std::string(), std::string(5000, '\0'), std::string("\xff\xfe garbage \x1b[31m"),
        std::string(100000, '['), good.substr(0, good.size() / 2), std::string("[]"),
        std::string("{}"), zero.dump(), negative.dump(), without.dump(), null.dump(),
        std::string(std::size_t{2} << 20, ' ') + good}) {
    std::ofstream(path, std::ios::binary) << text;
    const Measured first = measured_quietly();
    EXPECT_EQ(first.times, 1) << text.substr(0, 100);
    EXPECT_NE(first.err.find("damaged, and measured again: "), std::string::npos) << first.err;
    EXPECT_EQ(std::count(first.err.begin(), first.err.end(), '\n'), 1) << first.err;
    EXPECT_EQ(first.err.find("json.exception"), std::string::npos) << first.err;
    EXPECT_EQ(first.err.find('\x1b'), std::string::npos) << first.err;
    const Measured second = measured_quietly();
    EXPECT_EQ(second.times, 0) << "it was written anew: " << text.substr(0, 100);
    EXPECT_EQ(second.err, "");
  }
}

TEST(Machine, ACacheThatIsNoFileOrCannotBeWrittenIsToldOfOnce) {
  const KnownMachine known;
  const std::string path = bench::machine_cache_path();
  std::filesystem::remove(path);
  EXPECT_EQ(measured_quietly().err, "") << "nothing is remembered yet";
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Measured fifo = measured_quietly();
  EXPECT_EQ(fifo.times, 1);
  EXPECT_NE(fifo.err.find("it is no file"), std::string::npos) << fifo.err;
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  const Measured folder = measured_quietly();
  EXPECT_EQ(folder.times, 1);
  EXPECT_NE(folder.err.find("it is no file"), std::string::npos) << folder.err;
  EXPECT_NE(folder.err.find("are not remembered: "), std::string::npos) << folder.err;

  // No folder can be created at this path, not even by root.
  std::filesystem::remove_all(path);
  std::ofstream(known.folder + "/file") << "";
  setenv("XDG_CACHE_HOME", (known.folder + "/file").c_str(), 1);
  const Measured nowhere = measured_quietly();
  setenv("XDG_CACHE_HOME", known.folder.c_str(), 1);
  EXPECT_EQ(nowhere.times, 1);
  EXPECT_NE(nowhere.err.find("are not remembered: "), std::string::npos) << nowhere.err;
  EXPECT_EQ(std::count(nowhere.err.begin(), nowhere.err.end(), '\n'), 1) << nowhere.err;
}

TEST(Machine, NoiseIsHowFarTheMedianIsFromTheBest) {
  const bench::Rate rate = bench::best_rate({1.0, 2.0, 1.2, 1.5, 9.0}, 30);
  EXPECT_DOUBLE_EQ(rate.per_second, 30);
  EXPECT_DOUBLE_EQ(rate.noise, 0.5);
}

TEST(Machine, CommandTellsWhatIsRemembered) {
  const KnownMachine machine;
  const Outcome outcome = run_rung({"machine", "--json"});
  ASSERT_EQ(outcome.code, 0);
  const json told = json::parse(outcome.out);
  EXPECT_GE(told.at("cores"), 1);
  // The made-up rate shows that it was not measured again.
  EXPECT_EQ(told.at("arithmetic").at(0).at("operations_per_second"), 1e11);
  EXPECT_NE(run_rung({"machine"}).out.find("100 GFLOP/s"), std::string::npos);
}

// A chain in L1 takes a few cycles per step; in a buffer beyond the caches, many times as many.
TEST(Latency, OfLoadsGrowsWithTheBuffer) {
  const double l1 = bench::latency_rate(16 << 10).per_second;
  const double memory = bench::latency_rate(std::size_t{256} << 20).per_second;
  EXPECT_GT(l1, 0);
  EXPECT_GT(l1, 2 * memory);
  EXPECT_EQ(bench::latency_rate(64).per_second, 0) << "a line alone is no chain";
}

TEST(Latency, IsMeasuredWhereItIsMissingAndRemembered) {
  const KnownMachine known;  // its file has ceilings only
  EXPECT_TRUE(bench::remembered_machine()->latencies.empty());
  int measured = 0;
  const auto count = [&](std::string_view) { ++measured; };
  const bench::Machine first = bench::known_machine_with_latencies(false, count);
  EXPECT_GT(measured, 0);
  ASSERT_FALSE(first.latencies.empty());
  ASSERT_FALSE(first.atomics.empty());
  measured = 0;
  const bench::Machine again = bench::known_machine_with_latencies(false, count);
  EXPECT_EQ(measured, 0);
  EXPECT_EQ(again.latencies.front().seconds, first.latencies.front().seconds);
  EXPECT_EQ(again.bandwidth.size(), first.bandwidth.size());
  const Outcome told = run_rung({"machine"});
  EXPECT_NE(told.out.find("one access after another"), std::string::npos) << told.out;
  EXPECT_NE(told.out.find("atomic additions"), std::string::npos) << told.out;
}

TEST(Crossover, TimesADeviceWithCopiesAndWithout) {
  const Outcome refused = run_rung({"crossover", "fake", "--backend", "cpu"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("accepted: cuda, opencl"), std::string::npos) << refused.err;
  if (const Availability here = available(Backend::opencl); !here) {
    EXPECT_EQ(run_rung({"crossover", "fake", "--backend", "opencl"}).code, 3);
    return;
  }
  const Outcome timed =
      run_rung({"crossover", "elementwise", "f32 1000,add", "--backend", "opencl", "--json"});
  ASSERT_EQ(timed.code, 0) << timed.err;
  const json row = json::parse(timed.out)["rows"][0];
  EXPECT_EQ(row["problem"], "f32 1000,add");
  EXPECT_GT(row["cpu_seconds"], 0);
  EXPECT_GT(row["with_copies_seconds"], row["cpu_seconds"]) << "an addition of 4 KB";
}

}  // namespace
}  // namespace rung::test
