// SPDX-License-Identifier: Apache-2.0
// The problems on which `rung explain` runs an operator's rungs when none is given: small enough to
// be simulated, large enough that each rung does what it was written for.
//
//   constexpr ExplainProblem explain_list[] = {{"f32 256x256x64"}, {"f32 1x512x512", "gemv"}};
//   const ExplainProblems<Gemm> explain_problems{explain_list};
//
// stands once among the operator's problems. Rungs of an operator without such a list run on its
// bench_problems().
#pragma once

#include <span>
#include <string_view>

#include "rung/core/export.hpp"

namespace rung {

struct ExplainProblem {
  std::string_view problem;
  std::string_view rung = {};  // the only rung that runs on it; "": any that takes it
};

class RUNG_API AnyExplainProblems {
 public:
  AnyExplainProblems(const AnyExplainProblems&) = delete;
  AnyExplainProblems& operator=(const AnyExplainProblems&) = delete;

  /// Empty, where the operator of this name has none. A rung runs on the first that names it, else
  /// on the first that names no rung and that it takes.
  static std::span<const ExplainProblem> of(std::string_view op);

 protected:
  AnyExplainProblems(std::string_view op, std::span<const ExplainProblem> problems);
  ~AnyExplainProblems() = default;

 private:
  std::string_view op_;
  std::span<const ExplainProblem> problems_;
  const AnyExplainProblems* next_;
};

template <class Op>
class ExplainProblems : public AnyExplainProblems {
 public:
  explicit ExplainProblems(std::span<const ExplainProblem> problems)
      : AnyExplainProblems(Op::name, problems) {}
};

}  // namespace rung
