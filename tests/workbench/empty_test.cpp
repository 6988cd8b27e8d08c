// SPDX-License-Identifier: Apache-2.0
// Calls without an element to write end at once, however large the other extents are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

/// Returns the problem with every extent above `kept` as large as a product of 2^bits allows.
Problem blown_up(Problem problem, int bits, std::int64_t kept) {
  const auto grows = [kept](std::int64_t extent) { return extent > kept; };
  const auto grown = std::count_if(problem.extents.begin(), problem.extents.end(), grows);
  for (std::int64_t& extent : problem.extents) {
    if (grows(extent)) extent = std::int64_t{1} << (bits / std::max<std::ptrdiff_t>(grown, 1));
  }
  return problem;
}

/// Calls every rung. Returns whether the operator supports these extents. The problem may have
/// elements after all, more than fit in memory.
bool ends_at_once(const AnyOperator& op, const Problem& problem) {
  Context context = Context::cpu();
  std::unique_ptr<Instance> made;
  try {
    made = op.make(problem, Variant{}, 1, Device{});
  } catch (const Error& error) {
    return error.code() == ErrorCode::out_of_memory;
  }
  made->call(context);
  for (const RungInfo* rung : op.rungs()) {
    if (rung->backend != Backend::cpu || rung->peer || !made->supports(*rung, context)) continue;
    made->run(*rung, context);
  }
  return true;
}

TEST(EveryOperator, EndsAtOnceWhereThereIsNothingToWrite) {
  for (const AnyOperator* op : operators()) {
    if (op->name() == "fake") continue;  // its rungs fail on purpose
    for (const Problem& problem : op->check_problems(Backend::cpu)) {
      const auto& extents = problem.extents;
      if (std::count(extents.begin(), extents.end(), 0) == 0) continue;
      Problem plain = problem;  // options may name extents
      plain.options.clear();
      SCOPED_TRACE(std::string(op->name()) + " " + problem.to_string());
      // Images have fewer than 2^31 elements and at most four channels.
      EXPECT_TRUE(ends_at_once(*op, blown_up(plain, 60, 0)) ||
                  ends_at_once(*op, blown_up(plain, 45, 0)) ||
                  ends_at_once(*op, blown_up(problem, 45, 4)));
    }
  }
}

/// Expects a cost and supporting rungs for a problem, whichever of its extents are zero.
void expect_answers(const AnyOperator& op, const Problem& problem, Variant variant,
                    Context& context) {
  std::unique_ptr<Instance> made;
  try {
    constexpr std::int64_t few = 100000;
    if (op.examine(problem, context) > few) return;
    made = op.make(problem, variant, 1, context.device());
    made->validate(context);
  } catch (const Error&) {
    return;  // an empty set has no maximum; an option may not fit
  }
  SCOPED_TRACE(std::string(op.name()) + " " + problem.to_string() + " " + to_string(variant));
  const auto expect_cost = [](const Cost& cost) {
    EXPECT_TRUE(std::isfinite(cost.bytes) && cost.bytes >= 0) << cost.bytes;
    EXPECT_TRUE(std::isfinite(cost.operations) && cost.operations >= 0) << cost.operations;
  };
  expect_cost(made->cost());
  for (const RungInfo* rung : op.rungs()) {
    if (rung->backend != context.backend() || rung->peer) continue;
    SCOPED_TRACE(std::string(rung->name));
    if (made->supports(*rung, context)) expect_cost(made->traffic(*rung));
  }
  try {
    static_cast<void>(made->chosen(context));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
  }
}

TEST(EveryOperator, KnowsTheCostOfNothing) {
  for (const Backend backend : {Backend::cpu, Backend::simt}) {
    if (!available(backend)) continue;
    Context context = Context::on(backend);
    for (const AnyOperator* op : operators()) {
      if (op->name() == "fake") continue;
      for (const Problem& problem : op->check_problems(backend)) {
        for (std::size_t axis = 0; axis <= problem.extents.size(); ++axis) {
          Problem empty = problem;
          // Zeroes one extent after another, and finally all.
          for (std::size_t i = 0; i < problem.extents.size(); ++i) {
            if (i == axis || axis == problem.extents.size()) empty.extents[i] = 0;
          }
          for (const Layout layout : {Layout::plain, Layout::misaligned, Layout::transposed}) {
            expect_answers(*op, empty, {.layout = layout}, context);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace rung
