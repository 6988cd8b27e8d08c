// SPDX-License-Identifier: Apache-2.0
// The time model, and the selection of the machine whose rates a device uses.
#include "rung/core/rates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "expect_error.hpp"
#include "rung/core/operator.hpp"

namespace rung {
namespace {

constexpr Rates ones = {{1e-6, 1e-6, 1, 1, 1, 1, 1e-6, 1e-6, 1e-8, 1e-9}};

TEST(Work, SaysWhatLimits) {
  const Context context = Context::cpu(1);
  const auto limiter = [&](const Work& work) {
    return std::string(predict(terms_of(work, context), ones, Backend::cpu).limiter());
  };
  EXPECT_EQ(limiter({.bytes = 1e9, .operations = 1}), "memory");
  EXPECT_EQ(limiter({.bytes = 1, .operations = 1e12}), "arithmetic");
  EXPECT_EQ(limiter({.bytes = 1, .operations = 1, .blocks = 1e6}), "instructions");
  EXPECT_EQ(limiter({.bytes = 1, .operations = 1}), "launch");
}

TEST(Work, GrowsWithEveryFact) {
  for (const Backend backend : {Backend::cpu, Backend::simt}) {
    if (!available(backend)) continue;
    const Context context = Context::on(backend, 2);
    const Work base{.bytes = 1e8, .operations = 1e8, .blocks = 1e4, .rounds = 10, .steps = 10};
    const auto seconds = [&](const Work& work) {
      return predict(terms_of(work, context), ones, backend).seconds;
    };
    for (Amount Work::*fact : {&Work::bytes, &Work::operations, &Work::blocks, &Work::steps}) {
      Work more = base;
      (more.*fact).value *= 10;
      EXPECT_GT(seconds(more), seconds(base)) << to_string(backend);
    }
    if (backend == Backend::cpu) continue;
    Work more = base;
    more.rounds = 100;
    EXPECT_GT(seconds(more), seconds(base));
    more = base;
    more.resident = 8;
    EXPECT_LT(seconds(more), seconds(base));
    more = base;
    more.launches = 2;
    EXPECT_NEAR(seconds(more) - seconds(base), 1e-6, 1e-12);
  }
}

TEST(Work, IsSharedByThreadsOfACpu) {
  const Context context = Context::cpu(4);
  const Work one{.bytes = 1e9, .operations = 1e9, .blocks = 1e4, .steps = 10};
  Work shared = one;
  shared.threads = 4;
  const Prediction a = predict(terms_of(one, context), ones, Backend::cpu);
  const Prediction b = predict(terms_of(shared, context), ones, Backend::cpu);
  EXPECT_NEAR(b.seconds - b.starting, (a.seconds - a.starting) / 4, 1e-3 * a.seconds);
  EXPECT_NEAR(b.starting - a.starting, 3e-6, 1e-9) << "each further thread is woken";
}

TEST(Rates, AreSortedAsTheyAreSearched) {
  for (const RatedMachine& machine : rated_machines()) {
    EXPECT_TRUE(std::ranges::is_sorted(machine.kernels, {}, [](const KernelRates& one) {
      return std::tuple(one.op, one.kernel);
    })) << machine.name;
    for (const KernelRates& kernel : machine.kernels) {
      ASSERT_GT(kernel.count, 0);
      EXPECT_EQ(kernel.paths[0].path, "") << kernel.op << ' ' << kernel.kernel;
      for (int i = 0; i < kernel.count; ++i) {
        for (const double rate : kernel.paths[i].rates.of) EXPECT_GE(rate, 0);
      }
    }
  }
  EXPECT_LE(rated_machines().size(), static_cast<std::size_t>(max_rated_machines));
}

TEST(Rates, OfAnUnknownKernelAreItsOperators) {
  const Context context = Context::cpu(1);
  const RatedMachine* machine = machine_of(context);
  if (machine == nullptr) GTEST_SKIP() << "no CPU was measured";
  const KernelRates& own = find_rates("softmax", "no such kernel", context);
  EXPECT_EQ(own.kernel, "");
  EXPECT_EQ(own.op, "softmax");
  EXPECT_EQ(find_rates("no such operator", "kernel", context).op, "");
}

TEST(Rates, OfThePathOrOfAll) {
  const PathRates paths[] = {{"", {{1}}}, {"cut", {{2}}}};
  const KernelRates kernel{"op", "kernel", paths, 2};
  EXPECT_EQ(kernel("cut").of[0], 2);
  EXPECT_EQ(kernel("another").of[0], 1);
}

TEST(Rates, OfTheMachineThatIsMostSimilar) {
  // Each measured machine is most similar to itself.
  int index = 0;
  for (const RatedMachine& machine : rated_machines()) {
    DeviceInfo info{.name = std::string(machine.device)};
    info.compute_capability = machine.compute_capability;
    info.sms = machine.units;
    info.bytes_per_second = machine.bytes_per_second;
    if (!machine.is_gpu) info.family = machine.device;
    EXPECT_EQ(detail::match_machine(machine.is_gpu ? Backend::cuda : Backend::cpu, info), index)
        << machine.name;
    ++index;
  }
}

TEST(Rates, OfTheMachineThatTheEnvironmentNames) {
  for (const RatedMachine& machine : rated_machines()) {
    ASSERT_EQ(setenv("RUNG_RATES", std::string(machine.name).c_str(), 1), 0);
    const int found =
        detail::match_machine(machine.is_gpu ? Backend::cuda : Backend::cpu, DeviceInfo{});
    EXPECT_EQ(rated_machines()[static_cast<std::size_t>(found)].name, machine.name);
  }
  ASSERT_EQ(setenv("RUNG_RATES", "pdp11", 1), 0);
  test::expect_error(ErrorCode::invalid_argument, {"RUNG_RATES", "pdp11"},
                     [] { detail::match_machine(Backend::cpu, DeviceInfo{}); });
  unsetenv("RUNG_RATES");
}

}  // namespace
}  // namespace rung
