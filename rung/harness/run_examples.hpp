// SPDX-License-Identifier: Apache-2.0
// Examples in the help of `rung run OPERATOR`, for operators that need more than positional
// arguments:
//   const RunExample examples[] = {{"stencil", "x.npy --window 3x3 -o y.npy", "sums of 3 x 3"}};
#pragma once

#include <string_view>
#include <vector>

#include "rung/core/export.hpp"

namespace rung {

class RUNG_API RunExample {
 public:
  /// Registers an example. `words`: the arguments after `rung run OPERATOR`.
  RunExample(std::string_view op, std::string_view words, std::string_view comment = {});
  RunExample(const RunExample&) = delete;
  RunExample& operator=(const RunExample&) = delete;

  const std::string_view op;
  const std::string_view words;
  const std::string_view comment;

 private:
  friend RUNG_API std::vector<const RunExample*> run_examples(std::string_view op);
  const RunExample* next_;
};

/// Returns the examples of an operator, in order of declaration.
RUNG_API std::vector<const RunExample*> run_examples(std::string_view op);

}  // namespace rung
