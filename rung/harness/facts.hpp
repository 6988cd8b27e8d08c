// SPDX-License-Identifier: Apache-2.0
// Statements about a problem that hold for every rung of an operator: extents, parameters, data
// reuse. `rung explain` prints them above the ladder.
//
//   std::vector<std::string> facts_of(const Problem& problem) { ... }   // a sentence each
//   const Facts<Conv> facts{facts_of};
//
// Declared once per operator; optional.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/harness/problem.hpp"

namespace rung {

class RUNG_API AnyFacts {
 public:
  using Function = std::vector<std::string> (*)(const Problem&);
  AnyFacts(const AnyFacts&) = delete;
  AnyFacts& operator=(const AnyFacts&) = delete;

  /// Returns the facts that an operator declares; none by default.
  static std::vector<std::string> of(std::string_view op, const Problem& problem);

 protected:
  AnyFacts(std::string_view op, Function function);
  ~AnyFacts() = default;

 private:
  std::string_view op_;
  Function function_;
  const AnyFacts* next_;
};

template <class Op>
class Facts : public AnyFacts {
 public:
  explicit Facts(Function function) : AnyFacts(Op::name, function) {}
};

}  // namespace rung
