// SPDX-License-Identifier: Apache-2.0
// Values of a kernel's expressions in a finding's thread, as far as the source determines them:
// literals, integer launch arguments, thread and block indices, and variables assigned once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {

/// Tokens [begin, end) of a source.
struct TokenRange {
  std::size_t begin = 0, end = 0;
};

class ThreadValues {
 public:
  /// Constructs an evaluator. `function` contains the access: the kernel, or a function it calls.
  ThreadValues(const SourceTree& tree, const Function& function,
               const simt::record::Finding& finding);

  /// Returns the value of an expression, computed without wrap-around; nullopt if unknown.
  [[nodiscard]] std::optional<std::int64_t> value(TokenRange range) const;
  /// Returns the truth value of a condition with &&, || and !; nullopt if unknown.
  [[nodiscard]] std::optional<bool> truth(TokenRange range) const;
  /// Returns the token ranges of the values assigned to a variable.
  [[nodiscard]] std::vector<TokenRange> settings(std::string_view name) const {
    return variable(name).values;
  }
  /// Returns true if the expression subtracts, or contains a variable assigned by a subtraction.
  [[nodiscard]] bool may_be_negative(TokenRange range) const;
  /// Returns true if the expression adds, or contains a variable assigned by an addition to a value
  /// other than the thread's own index.
  [[nodiscard]] bool may_grow(TokenRange range) const;
  /// Returns true if the expression has an unsigned type: it wraps instead of becoming negative.
  [[nodiscard]] bool is_unsigned(TokenRange range) const;
  /// Returns true if the expression contains no variable other than kernel parameters.
  [[nodiscard]] bool is_uniform(TokenRange range) const;
  /// Returns the tokens of a loop variable's initial value.
  [[nodiscard]] std::optional<TokenRange> first_value(std::string_view variable,
                                                      const Statement& loop) const;

 private:
  struct Variable {
    std::vector<TokenRange> values;  // assigned values
    bool stepped = false;            // changed by an operator such as ++ or +=
    bool lowered = false;            // changed by -- or -=
    bool is_unsigned = false;        // declared unsigned
    bool deduced = false;            // declared with auto
  };
  class Parser;

  [[nodiscard]] Variable variable(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> value_of(std::string_view name, int depth) const;
  [[nodiscard]] std::optional<std::int64_t> value(TokenRange range, int depth) const;
  [[nodiscard]] std::optional<std::int64_t> constant(std::string_view name, int depth) const;
  [[nodiscard]] std::optional<std::int64_t> builtin(std::string_view name,
                                                    std::string_view axis) const;
  [[nodiscard]] bool may_be_negative(TokenRange range, int depth) const;
  [[nodiscard]] bool is_unsigned(TokenRange range, int depth) const;
  [[nodiscard]] bool is_parameter(std::string_view name) const;
  [[nodiscard]] std::vector<std::pair<const Function*, TokenRange>> passed(
      std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> value_passed(std::string_view name, int depth) const;
  [[nodiscard]] std::size_t statement_begin(std::size_t token) const;
  [[nodiscard]] std::size_t value_end(std::size_t begin) const;

  const SourceTree& tree_;
  const emulate::TokenStream& tokens_;
  const Function& function_;
  const simt::record::Finding& finding_;
};

}  // namespace rung::cuda
