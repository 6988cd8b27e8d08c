// SPDX-License-Identifier: Apache-2.0
// Extrapolates from a problem that can be simulated to a larger one, by the growth when each extent
// doubles.
#pragma once

#include <memory>
#include <vector>

#include "rung/workbench/explain.hpp"

namespace rung::workbench {

class LargerProblem {
 public:
  /// Parses the larger problem. Throws Error(invalid_argument) if `words` is not a valid problem of
  /// the operator.
  LargerProblem(const AnyOperator& op, const std::string& words);
  /// Returns true if the larger problem differs from the rung's problem only in extents.
  [[nodiscard]] bool suits(const Explained& one) const;
  /// Counts the rung with one extent of `one.problem` doubled at a time, and stores the runs in
  /// `one`. Throws Error(invalid_argument) unless suits(one).
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
