// SPDX-License-Identifier: Apache-2.0
// Concurrent operations of several threads - calls on contexts of their own, teams, the lists of
// operators and rungs - under ThreadSanitizer, which reports every pair of unordered accesses.
// Other tests cover single-threaded behavior.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rung/core/parallel.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/cpu/team.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_writer.hpp"

namespace rung {
namespace {

constexpr int callers = 4;
constexpr int calls = 40;

/// Runs body(index) on several threads at once.
template <class Body>
void at_once(const Body& body) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < callers; ++i) threads.emplace_back([&body, i] { body(i); });
}

/// Operator y = x + the sum of x: each thread needs the sums of all others, which share the
/// workspace.
struct AddSum {
  static constexpr std::string_view name = "add_sum";
  static constexpr std::string_view summary = "y = x + sum(x)";
  static constexpr std::string_view problem_help = "f64 N";
  struct Call {
    ConstTensorRef x = {};
    TensorRef y = {};
    bool operator==(const Call&) const = default;
  };
  struct Args : Call {};

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), out(call.y, "y"));
  }
  static RungList<AddSum>& rungs() {
    static constinit RungList<AddSum> list;
    return list;
  }
  static void bind(Args&) {}
  static Cost cost(const Args& args) { return {16.0 * static_cast<double>(args.x.size()), 0}; }
  static void reference(const Args&, Oracle&) {}
  static Tolerance tolerance(const Args&, const RungInfo&, Values) { return {}; }
  static std::vector<Problem> check_problems(Backend) { return {}; }
  static std::vector<Problem> bench_problems(Backend) { return {}; }
  static Call make(const Problem& problem, Inputs& inputs) {
    const Extents shape{problem.extents.at(0)};
    return {inputs.input("x", DType::f64, shape), inputs.output("y", DType::f64, shape)};
  }
  static Problem describe(const Call& call) {
    return ProblemWriter(call.x.dtype, call.x.shape).problem();
  }
  static std::span<const ArgumentSpec> arguments() { return {}; }
  static void invoke(Context&, Invocation&, Pick) {}
};

void add_sum(const AddSum::Args& args, Context& context) {
  const auto* x = static_cast<const double*>(args.x.data);
  auto* y = static_cast<double*>(args.y.data);
  const std::int64_t n = args.x.size();
  auto* sums = static_cast<double*>(
      context.workspace(static_cast<std::size_t>(context.threads()) * sizeof(double)));
  cpu::run_ranks(cpu::Ranks::exact, context.threads(), [&](const cpu::Team& team) {
    const cpu::Range mine = team.share(n);
    sums[team.rank()] = std::accumulate(x + mine.begin, x + mine.end, 0.0);
    team.wait();
    const double all = std::accumulate(sums, sums + team.size(), 0.0);
    team.wait();
    for (std::int64_t i = mine.begin; i < mine.end; ++i) y[i] = x[i] + all;
  });
}

const Rung<AddSum> self{{.name = "threads", .step = 10, .run = add_sum}};
const Operator<AddSum> registration;

TEST(Threads, CallOnContextsOfTheirOwn) {
  at_once([](int caller) {
    Context context = Context::cpu(1 + caller % 3);
    for (int n = 1; n <= calls; ++n) {
      // Another length each time: the workspace grows, and a rung is selected again.
      std::vector<double> x(static_cast<std::size_t>(n), 1.0), y(x.size());
      const ConstTensorRef from(x.data(), DType::f64, {n});
      const TensorRef to(y.data(), DType::f64, {n});
      for (int again = 0; again < 2; ++again) call<AddSum>(context, {from, to});
      ASSERT_EQ(std::count(y.begin(), y.end(), 1.0 + n), n);
      context.workspace(std::size_t{1} << (n % 16));
    }
  });
}

TEST(Threads, MakeContextsAndAskForBackends) {
  at_once([](int) {
    for (int i = 0; i < calls; ++i) {
      Context context = Context::cpu();
      EXPECT_GE(context.info().sms, 1);
      EXPECT_TRUE(available(Backend::cpu));
      static_cast<void>(available(Backend::cuda).why);
      Context moved = std::move(context);
      moved.memo<std::array<int, 4>>()[0] = i;
      EXPECT_GE(static_cast<int>(cpu::isa()), 0);
    }
  });
}

TEST(Threads, ReadTheListsOfOperatorsAndRungs) {
  at_once([](int) {
    const Context context = Context::cpu(2);
    for (int i = 0; i < calls; ++i) {
      const AnyOperator& op = find_operator("add_sum");
      EXPECT_EQ(op.rungs().size(), 1u);
      EXPECT_EQ(op.examine(Problem::parse("f64 7"), context), 7);
      const auto made = op.make(Problem::parse("f64 70"), {}, 1, context.device());
      EXPECT_EQ(made->chosen(context).name, "threads");
      EXPECT_THROW(static_cast<void>(find_operator("none")), Error);
    }
  });
}

TEST(Threads, RunTeamsAtOnceThatThrowNowAndThen) {
  at_once([](int caller) {
    for (int i = 0; i < calls; ++i) {
      std::vector<int> seen(3);
      const auto run = [&] {
        cpu::run_ranks(cpu::Ranks::exact, 3, [&](const cpu::Team& team) {
          seen[static_cast<std::size_t>(team.rank())] = i;
          team.wait();
          if (i % 5 == caller && team.rank() == i % 3) throw std::runtime_error("now");
          const int left = seen[static_cast<std::size_t>((team.rank() + 1) % team.size())];
          team.wait();
          seen[static_cast<std::size_t>(team.rank())] += left;
        });
      };
      if (i % 5 == caller) {
        EXPECT_THROW(run(), std::runtime_error);
      } else {
        run();
        EXPECT_EQ(seen, std::vector<int>(3, 2 * i));
      }
    }
  });
}

TEST(Threads, MakeAndCompareInputs) {
  at_once([](int caller) {
    constexpr std::int64_t several_parts = 3 << 20;
    Inputs inputs({}, static_cast<std::uint64_t>(caller) + 1);
    inputs.input("x", DType::f32, {several_parts});
    inputs.output("y", DType::f32, {several_parts});
    inputs.reset();
    EXPECT_EQ(inputs.damage(), "");
    std::vector<int> parts(8);
    for_each_part(8, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) parts[static_cast<std::size_t>(i)] = caller;
    });
    EXPECT_EQ(parts, std::vector<int>(8, caller));
  });
}

}  // namespace
}  // namespace rung
