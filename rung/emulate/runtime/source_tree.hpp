// SPDX-License-Identifier: Apache-2.0
// Statements of the program's sources, as far as advice requires: loops and branches around an
// access, barriers, and variables that differ between threads.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rung/emulate/token.hpp"

namespace rung::cuda {

struct Statement {
  enum class Kind : std::uint8_t { block, branch, loop, simple };
  Kind kind = Kind::simple;
  std::size_t begin = 0, end = 0;                // tokens of the statement
  std::size_t header_begin = 0, header_end = 0;  // tokens between the parentheses of its header
  const Statement* parent = nullptr;
  std::vector<std::unique_ptr<Statement>> parts;

  [[nodiscard]] bool contains(const Statement& other) const {
    return begin <= other.begin && other.end <= end;
  }
};

using Names = std::set<std::string, std::less<>>;

struct Function {
  std::string name;
  bool kernel = false;
  std::size_t parameters_begin = 0, parameters_end = 0;  // tokens between the parentheses
  Statement body;
  Names varying;  // variables whose value depends on the thread
};

/// A source file of the program.
class SourceTree {
 public:
  /// Parses a file. `text`: its text, with blanks in place of what the preprocessor has removed.
  SourceTree(std::string file, const std::string& text);
  SourceTree(const SourceTree&) = delete;
  SourceTree& operator=(const SourceTree&) = delete;

  struct Spot {
    const Function* function = nullptr;    // null: the line is outside of any function
    const Statement* statement = nullptr;  // simple, or with the access in its header
  };
  /// Returns the statement in this line; if there are several, the one that mentions the array.
  [[nodiscard]] Spot find(int line, std::string_view array) const;
  /// Returns all statements with tokens in this line, each as find() returns it.
  [[nodiscard]] std::vector<Spot> spots(int line) const;
  /// Returns the function of this name; null if there is none or there are several.
  [[nodiscard]] const Function* function(std::string_view name) const;
  [[nodiscard]] const std::vector<std::unique_ptr<Function>>& functions() const {
    return functions_;
  }
  /// Returns the function called at this token, with or without template arguments; null if the
  /// token does not begin a call, or the function is not in this file.
  [[nodiscard]] const Function* called_at(std::size_t token) const;
  /// Returns the innermost statement of the function that contains the token.
  [[nodiscard]] static const Statement& statement_at(const Function& function, std::size_t token);
  /// Returns true if the token is the first in its line, so that a statement can be inserted before
  /// it.
  [[nodiscard]] bool begins_line(std::size_t token) const {
    return tokens_[token].space.find('\n') != std::string_view::npos;
  }

  [[nodiscard]] const emulate::TokenStream& tokens() const { return tokens_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] int line(std::size_t token) const { return lines_[token]; }
  /// Returns the text as in the file, without leading blanks.
  [[nodiscard]] std::string text(std::size_t begin, std::size_t end) const;
  [[nodiscard]] std::string text(const Statement& one) const { return text(one.begin, one.end); }
  /// Returns true if the call at this token is a block barrier or, if `warp`, a block or warp
  /// barrier.
  [[nodiscard]] bool is_barrier(std::size_t token, bool warp) const;
  [[nodiscard]] bool mentions(std::size_t begin, std::size_t end, std::string_view word) const;
  [[nodiscard]] bool mentions_any(std::size_t begin, std::size_t end, const Names& names) const;
  /// Returns true if the statement's condition is uniform over the block or, if `warp`, the warp.
  [[nodiscard]] bool uniform(const Function& function, const Statement& one, bool warp) const;
  /// Returns the names of a function's parameters in order.
  [[nodiscard]] std::vector<std::string> parameters(const Function& function) const;

 private:
  void find_functions();
  void find_varying(Function& function) const;
  std::size_t parse(std::size_t at, Statement& parent);

  std::string file_;
  emulate::TokenStream tokens_;
  std::vector<int> lines_;
  std::vector<std::unique_ptr<Function>> functions_;
};

/// A preprocessed source with a unique name. Its text is never freed.
struct PreprocessedText {
  std::string name;
  const std::string* text;
};

/// Returns the preprocessed sources of the program and of the libraries loaded so far. `rewritten`:
/// returns the sources as compiled.
std::vector<PreprocessedText> preprocessed_texts(bool rewritten);

/// Returns the tree of a source file, by its path as in findings; null if the file cannot be read.
const SourceTree* source_tree(const std::string& file);

/// Returns the text of a source file, comments included; "" if it cannot be read.
std::string source_text(const std::string& file);

}  // namespace rung::cuda
