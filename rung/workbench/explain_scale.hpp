// SPDX-License-Identifier: Apache-2.0
// From a problem that can be simulated to a larger one, by what each extent adds when it doubles.
#pragma once

#include <memory>
#include <vector>

#include "rung/workbench/explain.hpp"

namespace rung::workbench {

class LargerProblem {
 public:
  /// Throws Error(invalid_argument) for words that are no problem of the operator.
  LargerProblem(const AnyOperator& op, const std::string& words);
  /// Returns true if it differs from the rung's problem in nothing but extents.
  [[nodiscard]] bool suits(const Explained& one) const;
  /// Counts the rung, which was counted on `one.problem`, with one extent after the other doubled.
  /// Throws Error(invalid_argument) where it does not suit.
  void extrapolate(Explained& one);

 private:
  struct Made {
    Problem problem;
    std::unique_ptr<Instance> instance;
  };
  Instance& make(const Problem& problem);

  const AnyOperator& op_;
  Problem at_;
  Cost cost_;
  std::vector<Made> made_;
};

}  // namespace rung::workbench
