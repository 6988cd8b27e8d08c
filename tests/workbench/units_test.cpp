// SPDX-License-Identifier: Apache-2.0
// Building blocks of the commands: statistics, alternation, rooflines, comparison, tables.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fake_operator.hpp"
#include "rung/bench/alternate.hpp"
#include "rung/bench/machine.hpp"
#include "rung/bench/roofline.hpp"
#include "rung/bench/statistics.hpp"
#include "rung/workbench/compare.hpp"
#include "rung/workbench/table.hpp"

namespace rung::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Statistics, QuantilesInterpolate) {
  const double samples[] = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(bench::median(samples), 2.5);
  EXPECT_DOUBLE_EQ(bench::quantile(samples, 0), 1);
  EXPECT_DOUBLE_EQ(bench::quantile(samples, 1), 4);
  EXPECT_DOUBLE_EQ(bench::quantile(samples, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(bench::spread(samples), (3.25 - 1.75) / 2.5);
  EXPECT_TRUE(std::isnan(bench::median({})));
  const double single[] = {7};
  EXPECT_DOUBLE_EQ(bench::median(single), 7);
  EXPECT_DOUBLE_EQ(bench::spread(single), 0);
}

TEST(Alternate, RatioIsTakenWithinRounds) {
  // The machine becomes ten times slower twice: both medians change, the ratio does not.
  const bench::Samples slow{{2, 20, 200}};
  const bench::Samples fast{{1, 10, 100}};
  EXPECT_DOUBLE_EQ(bench::speed_ratio(slow, fast), 2);
  EXPECT_DOUBLE_EQ(bench::speed_ratio(fast, slow), 0.5);
  // A round with a missing sample does not count.
  const bench::Samples rarely{{nan, 5, nan}};
  EXPECT_DOUBLE_EQ(bench::speed_ratio(slow, rarely), 4);
  EXPECT_EQ(rarely.count(), 1);
}

TEST(Alternate, EveryVersionIsTimedInEveryRoundInTurns) {
  std::vector<std::size_t> order;
  bench::SamplingPlan plan;
  plan.rounds = 4;
  plan.sample_seconds = 1e-5;
  plan.warm_up_seconds = 1e-5;
  volatile long sink = 0;
  const bench::Contender work{[&](long repeats) {
    for (long i = 0; i < repeats * 1000; ++i) sink = i;
  }};
  const auto samples =
      bench::alternate({work, work, work}, plan, [&](std::size_t i) { order.push_back(i); });
  ASSERT_EQ(samples.size(), 3u);
  for (const bench::Samples& one : samples) EXPECT_EQ(one.count(), 4);
  // Three calibrations, then four rounds of three; consecutive rounds start with different
  // versions.
  ASSERT_EQ(order.size(), 3u + 4u * 3u);
  for (std::size_t round = 0; round + 1 < 4; ++round) {
    EXPECT_NE(order[3 + 3 * round], order[3 + 3 * (round + 1)]);
  }
}

TEST(Alternate, SlowVersionsTakePartInFewerRounds) {
  bench::SamplingPlan plan;
  plan.rounds = 12;
  plan.slow_seconds = 1e-9;  // every version counts as slow
  volatile int sink = 0;
  int runs = 0;
  const bench::Contender slow{[&](long repeats) {
    for (long i = 0; i < repeats * 3000000; ++i) sink = static_cast<int>(i);
    ++runs;
  }};
  const auto samples = bench::alternate({slow}, plan);
  EXPECT_EQ(samples[0].count(), 1);
}

TEST(Roofline, TheCostlierOfWorkAndTrafficBinds) {
  bench::Ceiling ceiling;
  ceiling.operations_per_second = 100;
  ceiling.bytes_per_second = 10;
  EXPECT_DOUBLE_EQ(bench::seconds_at_best({.bytes = 10, .operations = 500}, ceiling), 5);
  EXPECT_FALSE(bench::bound_by_memory({.bytes = 10, .operations = 500}, ceiling));
  EXPECT_DOUBLE_EQ(bench::seconds_at_best({.bytes = 80, .operations = 500}, ceiling), 8);
  EXPECT_TRUE(bench::bound_by_memory({.bytes = 80, .operations = 500}, ceiling));
  // Without a measured peak there is no bound.
  ceiling.operations_per_second = 0;
  EXPECT_DOUBLE_EQ(bench::seconds_at_best({.bytes = 80, .operations = 500}, ceiling), 0);
  EXPECT_FALSE(bench::bound_by_memory({.bytes = 80, .operations = 500}, ceiling));
  // But at one operation per byte memory is the bound at any rate: integers have no measured rate.
  EXPECT_DOUBLE_EQ(bench::seconds_at_best({.bytes = 80, .operations = 80}, ceiling), 8);
  EXPECT_TRUE(bench::bound_by_memory({.bytes = 80, .operations = 80}, ceiling));
  ceiling.bytes_per_second = 0;
  EXPECT_DOUBLE_EQ(bench::seconds_at_best({.bytes = 80, .operations = 80}, ceiling), 0);
  EXPECT_FALSE(bench::bound_by_memory({.bytes = 80, .operations = 80}, ceiling));
}

TEST(Roofline, LevelThreadsAndMixAreChosen) {
  bench::Machine machine;
  machine.cores = 4;
  machine.l1_bytes = 1000;
  machine.l2_bytes = 10000;
  machine.arithmetic = {{"avx2", "f32", 1, 100}, {"avx2", "f32", 4, 300}};
  machine.bandwidth = {{"L1", "read", 1, 0, 80},    {"L1", "copy", 1, 0, 80},
                       {"L2", "read", 1, 0, 40},    {"L2", "copy", 1, 0, 20},
                       {"memory", "read", 1, 0, 8}, {"memory", "copy", 1, 0, 8}};
  EXPECT_EQ(bench::cpu_ceiling(machine, "avx2", "f32", 1, 500, 0).memory, "L1");
  EXPECT_EQ(bench::cpu_ceiling(machine, "avx2", "f32", 1, 5000, 0).memory, "L2");
  EXPECT_EQ(bench::cpu_ceiling(machine, "avx2", "f32", 1, 50000, 0).memory, "memory");
  EXPECT_DOUBLE_EQ(bench::cpu_ceiling(machine, "avx2", "f32", 1, 5000, 0).bytes_per_second, 40);
  EXPECT_DOUBLE_EQ(bench::cpu_ceiling(machine, "avx2", "f32", 1, 5000, 0.5).bytes_per_second, 20);
  // Two threads: twice one thread's rate; three: at most the rate measured with all.
  EXPECT_DOUBLE_EQ(bench::cpu_ceiling(machine, "avx2", "f32", 2, 1, 0).operations_per_second, 200);
  EXPECT_DOUBLE_EQ(bench::cpu_ceiling(machine, "avx2", "f32", 3, 1, 0).operations_per_second, 300);
  EXPECT_DOUBLE_EQ(bench::cpu_ceiling(machine, "avx2", "bf16", 1, 1, 0).operations_per_second, 100)
      << "small floats are computed in f32";
}

TEST(Machine, JsonRoundTrip) {
  bench::Machine machine;
  machine.cpu = "a CPU \"quoted\"";
  machine.cores = 3;
  machine.arithmetic = {{"avx2", "f32", 1, 1.25e11}};
  machine.bandwidth = {{"L2", "copy", 2, 4096, 3e10}};
  machine.gpus.push_back({});
  machine.gpus[0].name = "a GPU";
  machine.gpus[0].arithmetic = {{"tf32", 4e14}};
  const std::string json = bench::machine_to_json(machine);
  EXPECT_EQ(bench::machine_to_json(bench::machine_from_json(json)), json);
  EXPECT_THROW(bench::machine_from_json("{}"), Error);
  EXPECT_THROW(bench::machine_from_json("not json"), Error);
}

struct Judged {
  double got;
  double expected;
  bool good;
};
class Compare : public testing::TestWithParam<Judged> {};

TEST_P(Compare, AgainstTolerance) {
  const Judged& one = GetParam();
  const Tensor got(DType::f32, {1, 1});
  *got.data<float>() = static_cast<float>(one.got);
  Oracle::Output expected;
  expected.rows = {0};
  expected.length = 1;
  expected.value = {one.expected};
  expected.magnitude = {4};
  // Allowed: 0.5 + 0.1 |expected| + 0.25 * 4.
  const std::string why = workbench::mismatch("y", got, expected, {0.5, 0.1, 0.25});
  EXPECT_EQ(why.empty(), one.good) << why;
}

INSTANTIATE_TEST_SUITE_P(
    Values, Compare,
    testing::Values(Judged{10, 10, true}, Judged{12.4, 10, true}, Judged{12.6, 10, false},
                    Judged{7.4, 10, false}, Judged{nan, 10, false}, Judged{infinity, 10, false},
                    Judged{10, nan, false}, Judged{nan, nan, true}, Judged{infinity, nan, false},
                    Judged{infinity, infinity, true}, Judged{-infinity, infinity, false},
                    Judged{3e38, infinity, false},
                    // Too large for the type: only the infinity of the same sign is right.
                    Judged{infinity, 1e39, true}, Judged{-infinity, 1e39, false}));

TEST(Compare, MessageSaysWhereAndHowFar) {
  const Tensor got(DType::f32, {2, 3});
  for (int i = 0; i < 6; ++i) got.data<float>()[i] = 1;
  Oracle::Output expected;
  expected.rows = {1};
  expected.length = 3;
  expected.value = {1, 1, 2};
  expected.magnitude = {0, 0, 0};
  const std::string why = workbench::mismatch("y", got, expected, {0.25, 0, 0});
  EXPECT_NE(why.find("y[1, 2] is 1, expected 2, off by 1, allowed 0.25"), std::string::npos) << why;
  EXPECT_NE(why.find("1 of 3"), std::string::npos) << why;
}

TEST(Compare, RowsAreAllWhenSmallElseEndsAndSome) {
  EXPECT_EQ(workbench::rows_to_judge({5, 7}, 100, 1).size(), 5u);
  EXPECT_TRUE(workbench::rows_to_judge({0, 7}, 0, 1).empty());
  EXPECT_TRUE(workbench::rows_to_judge({7, 0}, 0, 1).empty());
  EXPECT_EQ(workbench::rows_to_judge({}, 1, 1).size(), 1u) << "a scalar is one row";
  const auto rows = workbench::rows_to_judge({4096, 4096}, 1e11, 1);
  EXPECT_LE(rows.size(), 32u);
  EXPECT_EQ(rows.front(), 0);
  EXPECT_EQ(rows.back(), 4095);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_NE(rows, workbench::rows_to_judge({4096, 4096}, 1e11, 2)) << "another seed, other rows";
  // Few long rows: at most all of them.
  EXPECT_EQ(workbench::rows_to_judge({3, 1000000}, 1e12, 1).size(), 3u);
}

TEST(Table, FitsThePage) {
  workbench::Table table({{"name"}, {"number", true}, {"empty"}, {"note"}});
  table.add({"a", "1", "", std::string(90, 'x') + " " + std::string(200, 'y')});
  table.add({"longer", "12345"});
  const std::string text = table.text();
  expect_fits_the_page(text);
  EXPECT_EQ(text.find("empty"), std::string::npos) << "an empty column is left out";
}

TEST(Table, NumbersHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(workbench::format_seconds(1.234), "1.23 s");
  EXPECT_EQ(workbench::format_seconds(0.9999), "1.00 s");
  EXPECT_EQ(workbench::format_seconds(0.0456), "45.6 ms");
  EXPECT_EQ(workbench::format_seconds(5.2e-8), "52.0 ns");
  EXPECT_EQ(workbench::format_bytes(48 * 1024), "48 KiB");
}

}  // namespace
}  // namespace rung::test
