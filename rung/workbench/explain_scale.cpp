// SPDX-License-Identifier: Apache-2.0
// Counts a rung on problems with one extent doubled.
#include "rung/workbench/explain_scale.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rung/core/error.hpp"
#include "rung/workbench/selection.hpp"

namespace rung::workbench {

LargerProblem::LargerProblem(const AnyOperator& op, const std::string& words)
    : op_(op), at_(Problem::parse(words)) {
  const Context context = Context::on(Backend::simt);
  expect_work(op, at_, context, "explain");
  cost_ = op.outline(at_, context)->cost();
}

Instance& LargerProblem::make(const Problem& problem) {
  const auto same = std::find_if(made_.begin(), made_.end(),
                                 [&](const Made& made) { return made.problem == problem; });
  if (same != made_.end()) return *same->instance;
  made_.push_back({problem, op_.make(problem, {}, 1, {Backend::simt, 0})});
  return *made_.back().instance;
}

bool LargerProblem::suits(const Explained& one) const {
  Problem alike = at_;
  alike.extents = one.problem.extents;
  return alike == one.problem && at_.extents.size() == one.problem.extents.size();
}

void LargerProblem::extrapolate(Explained& one) {
  if (!suits(one)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--at: '{}' given; accepted: a problem that differs from '{}' in "
                            "nothing but its extents",
                            at_.to_string(), one.problem.to_string()));
  }
  if (!one.counted()) return;
  for (std::size_t i = 0; i < at_.extents.size(); ++i) {
    const std::int64_t counted = one.problem.extents[i];
    if (at_.extents[i] == counted) continue;
    Problem doubled = one.problem;
    doubled.extents[i] *= 2;
    const Explained twice = explain_rung(*one.rung, doubled, make(doubled));
    one.doubled.push_back(
        {static_cast<double>(at_.extents[i]) / static_cast<double>(counted), twice.kernels});
  }
  one.at = at_;
  one.cost_at = cost_;
}

}  // namespace rung::workbench
