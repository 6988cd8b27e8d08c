// SPDX-License-Identifier: Apache-2.0
// Registry of the facts that operators declare by facts.hpp.
#include "rung/harness/facts.hpp"

namespace rung {
namespace {
constinit const AnyFacts* first_facts = nullptr;
}

AnyFacts::AnyFacts(std::string_view op, Function function)
    : op_(op), function_(function), next_(first_facts) {
  first_facts = this;
}

std::vector<std::string> AnyFacts::of(std::string_view op, const Problem& problem) {
  for (const AnyFacts* one = first_facts; one != nullptr; one = one->next_) {
    if (one->op_ == op) return one->function_(problem);
  }
  return {};
}

}  // namespace rung
