// SPDX-License-Identifier: Apache-2.0
// Calls with no element to write end at once, however large the other extents are.
#include <gtest/gtest.h>

#include <algorithm>

#include "rung/core/any_operator.hpp"

namespace rung {
namespace {

/// The problem without its options, and with every extent that is not zero as large as a product
/// within 2^60 allows.
Problem blown_up(Problem problem) {
  problem.options.clear();
  const auto kept = std::count_if(problem.extents.begin(), problem.extents.end(),
                                  [](std::int64_t extent) { return extent != 0; });
  for (std::int64_t& extent : problem.extents) {
    if (extent != 0) extent = std::int64_t{1} << (60 / std::max<std::ptrdiff_t>(kept, 1));
  }
  return problem;
}

TEST(EveryOperator, EndsAtOnceWhereThereIsNothingToWrite) {
  Context context = Context::cpu();
  for (const AnyOperator* op : operators()) {
    if (op->name() == "fake") continue;  // of fake_operator.hpp, whose rungs fail on purpose
    for (const Problem& problem : op->check_problems(Backend::cpu)) {
      const auto& extents = problem.extents;
      if (std::count(extents.begin(), extents.end(), 0) == 0) continue;
      const Problem large = blown_up(problem);
      std::unique_ptr<Instance> made;
      try {
        made = op->make(large, Variant{}, 1, Device{});
      } catch (const Error& error) {
        // It does have elements, and more than there is memory for.
        ASSERT_EQ(error.code(), ErrorCode::out_of_memory) << large.to_string() << error.what();
        continue;
      }
      SCOPED_TRACE(std::string(op->name()) + " " + large.to_string());
      made->call(context);
      for (const RungInfo* rung : op->rungs()) {
        if (rung->backend != Backend::cpu || rung->peer || !made->supports(*rung, context))
          continue;
        made->run(*rung, context);
      }
    }
  }
}

}  // namespace
}  // namespace rung
