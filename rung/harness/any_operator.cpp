// SPDX-License-Identifier: Apache-2.0
// The list of operators in this process.
#include "rung/harness/any_operator.hpp"

#include <cmath>
#include <sstream>

#include "rung/core/require.hpp"
#include "rung/core/suggestion.hpp"

namespace rung {
namespace {

/// Head of the list; constinit, because operators register themselves before main, in any order.
constinit const AnyOperator* first_operator = nullptr;

}  // namespace

std::int64_t Invocation::integer(std::string_view op, std::string_view name, std::int64_t otherwise,
                                 Problem::Whole accepted) const {
  const double value = number(name, static_cast<double>(otherwise));
  // Compared as doubles: converting a value outside the range of int64 is undefined.
  if (std::floor(value) != value || value < static_cast<double>(accepted.min) ||
      value > static_cast<double>(accepted.max)) {
    std::ostringstream given;
    given << value;
    reject(op, "--" + std::string(name) + " " + given.str() + "; accepted: a whole number from " +
                   std::to_string(accepted.min) + " to " + std::to_string(accepted.max));
  }
  return static_cast<std::int64_t>(value);
}

AnyOperator::AnyOperator() : next_(first_operator) { first_operator = this; }

std::vector<const AnyOperator*> operators() {
  std::vector<const AnyOperator*> all;
  for (const AnyOperator* op = first_operator; op != nullptr; op = op->next_) all.push_back(op);
  std::sort(all.begin(), all.end(),
            [](const AnyOperator* a, const AnyOperator* b) { return a->name() < b->name(); });
  return all;
}

const AnyOperator& find_operator(std::string_view name) {
  std::string list;
  std::vector<std::string_view> known;
  for (const AnyOperator* op : operators()) {
    if (op->name() == name) return *op;
    known.push_back(op->name());
    list += (list.empty() ? "" : ", ") + std::string(op->name());
  }
  throw Error(ErrorCode::invalid_argument, "no operator '" + std::string(name) + "'" +
                                               did_you_mean(name, known) + "; accepted: " + list);
}

}  // namespace rung
