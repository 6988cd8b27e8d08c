// SPDX-License-Identifier: Apache-2.0
// Kernels' facts are true: launches, blocks and bytes of every kernel that may be selected, against
// the counters of the simulated GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rung/harness/any_operator.hpp"
#include "rung/workbench/explain.hpp"

namespace rung::workbench {
namespace {

/// Rungs whose facts are known to differ: copies that are no kernels. The list must only shrink.
constexpr std::string_view known_to_be_off[] = {"transfer/pageable_copy", "transfer/pinned_copy",
                                                "transfer/chunked_streams"};

/// Returns the number of launches that zero memory of a context, which only the first call needs.
double launches_once(const Explained& counted) {
  return static_cast<double>(std::ranges::count_if(counted.kernels, [](const auto& kernel) {
    const std::size_t at = kernel.name.find("_zero");
    return at != std::string::npos && !kernel.name.substr(at).starts_with("_zeros");
  }));
}

/// Returns small check problems that a rung supports: counting is slow.
std::vector<Problem> problems_of(const AnyOperator& op, const RungInfo& rung,
                                 const Context& context) {
  constexpr std::size_t most = 4;
  constexpr double max_bytes = 1 << 16;
  std::vector<std::pair<double, Problem>> sized;
  for (const Problem& problem : op.check_problems(Backend::simt)) {
    try {
      const double bytes = op.footprint(problem, context);
      if (bytes == 0 || bytes > max_bytes || op.examine(problem, context) == 0) continue;
      if (op.outline(problem, context)->supports(rung, context)) sized.emplace_back(bytes, problem);
    } catch (const Error&) {
      continue;
    }
  }
  // The largest of the small problems, which have more than one block.
  std::ranges::stable_sort(sized, std::greater{}, &std::pair<double, Problem>::first);
  std::vector<Problem> problems;
  for (const auto& [bytes, problem] : sized) {
    if (problems.size() < most) problems.push_back(problem);
  }
  return problems;
}

class Facts : public testing::TestWithParam<const AnyOperator*> {};

TEST_P(Facts, AreWhatTheSimulatedGpuCounts) {
  const AnyOperator& op = *GetParam();
  const Context context = Context::simt();
  for (const RungInfo* rung : op.rungs()) {
    if (rung->backend != Backend::simt || rung->peer || rung->teaching) continue;
    const std::string full_name = std::string(op.name()) + '/' + std::string(rung->name);
    if (std::ranges::find(known_to_be_off, full_name) != std::end(known_to_be_off)) continue;
    for (const Problem& problem : problems_of(op, *rung, context)) {
      const auto made = op.make(problem, {}, 1, context.device());
      if (!made->has_facts(*rung)) continue;
      const Work work = made->work(*rung, context);
      const Explained counted = explain_rung(*rung, problem, *made);
      if (!counted.counted()) GTEST_SKIP() << counted.why_not_run;
      SCOPED_TRACE(full_name + ": " + problem.to_string());
      EXPECT_EQ(work.launches,
                static_cast<double>(counted.total.launches) - launches_once(counted));
      // Kernels that differ in bytes only do not state blocks.
      const bool is_stated = work.blocks != 1 || work.rounds > 0 || work.steps > 0;
      const bool is_a_launch = std::ranges::any_of(counted.total.each, [&](const auto& launch) {
        return work.blocks == double{1} * launch.grid.x * launch.grid.y * launch.grid.z;
      });
      EXPECT_TRUE(!is_stated || is_a_launch)
          << work.blocks << " blocks of " << counted.total.blocks;
      // Memory traffic is at least each accessed byte once, and at most the bytes requested.
      const double most = std::max(counted_bytes(counted.total.totals), made->cost().bytes);
      EXPECT_LE(work.bytes, 1.01 * most + 64);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Facts, testing::ValuesIn(operators()),
                         [](const auto& one) { return std::string(one.param->name()); });

}  // namespace
}  // namespace rung::workbench
