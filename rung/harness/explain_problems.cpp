// SPDX-License-Identifier: Apache-2.0
// Registry of the problems that operators declare by explain_problems.hpp.
#include "rung/harness/explain_problems.hpp"

namespace rung {
namespace {
constinit const AnyExplainProblems* first_list = nullptr;
}

AnyExplainProblems::AnyExplainProblems(std::string_view op,
                                       std::span<const ExplainProblem> problems)
    : op_(op), problems_(problems), next_(first_list) {
  first_list = this;
}

std::span<const ExplainProblem> AnyExplainProblems::of(std::string_view op) {
  for (const AnyExplainProblems* one = first_list; one != nullptr; one = one->next_) {
    if (one->op_ == op) return one->problems_;
  }
  return {};
}

}  // namespace rung
