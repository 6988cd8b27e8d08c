// SPDX-License-Identifier: Apache-2.0
// Values of a kernel's expressions for the one thread that a finding names, as far as the source
// tells: literals, the launch's integers, thread and block indices, variables that are set once.
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

/// Tokens begin .. end-1 of a source.
struct TokenRange {
  std::size_t begin = 0, end = 0;
};

class ThreadValues {
 public:
  /// `function` holds the access; it may be one that the kernel calls.
  ThreadValues(const SourceTree& tree, const Function& function,
               const simt::record::Finding& finding);

  /// Returns the value of an expression, without wrap-around; nullopt where it is not known.
  [[nodiscard]] std::optional<std::int64_t> value(TokenRange range) const;
  /// Returns whether a condition holds, with &&, || and !; nullopt where that is not known.
  [[nodiscard]] std::optional<bool> truth(TokenRange range) const;
  /// Returns the values that a variable is set to, by the tokens of each.
  [[nodiscard]] std::vector<TokenRange> settings(std::string_view name) const {
    return variable(name).values;
  }
  /// Returns whether the expression subtracts, or has a variable that is set by subtracting.
  [[nodiscard]] bool may_be_negative(TokenRange range) const;
  /// Returns whether the expression adds, or has a variable that is set by adding to something else
  /// than the thread's own index.
  [[nodiscard]] bool may_grow(TokenRange range) const;
  /// Returns whether the expression is of an unsigned type: it wraps instead of being negative.
  [[nodiscard]] bool is_unsigned(TokenRange range) const;
  /// Returns whether no variable stands in the expression, parameters of the kernel apart.
  [[nodiscard]] bool is_uniform(TokenRange range) const;
  /// Returns the value that a loop gives its variable at first: the initializer's tokens.
  [[nodiscard]] std::optional<TokenRange> first_value(std::string_view variable,
                                                      const Statement& loop) const;

 private:
  struct Variable {
    std::vector<TokenRange> values;  // values that it is set to
    bool stepped = false;            // changed by ++, += ...
    bool lowered = false;            // changed by -- or -=
    bool is_unsigned = false;        // declared as unsigned
    bool deduced = false;            // declared auto
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
