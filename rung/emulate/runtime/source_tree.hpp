// SPDX-License-Identifier: Apache-2.0
// The statements of the program's source, as far as advice needs them: which loops and branches an
// access stands in, where barriers are, which variables differ from thread to thread.
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
  std::size_t begin = 0, end = 0;                // its tokens
  std::size_t header_begin = 0, header_end = 0;  // tokens between the parentheses of its head
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
  std::size_t parameters_begin = 0, parameters_end = 0;  // between the parentheses
  Statement body;
  Names varying;  // variables whose value depends on the thread
};

/// One file of the program.
class SourceTree {
 public:
  /// `text`: the file's text, with blanks for whatever the preprocessor left out.
  SourceTree(std::string file, const std::string& text);
  SourceTree(const SourceTree&) = delete;
  SourceTree& operator=(const SourceTree&) = delete;

  struct Spot {
    const Function* function = nullptr;    // null: the line is in none
    const Statement* statement = nullptr;  // a simple one, or one in whose head the access is
  };
  /// Returns the statement of this line; of several, the one that mentions the array.
  [[nodiscard]] Spot find(int line, std::string_view array) const;
  /// Returns all statements that have tokens in this line, as find() would give them.
  [[nodiscard]] std::vector<Spot> spots(int line) const;
  /// Returns the function of this name; null where there is none, or several.
  [[nodiscard]] const Function* function(std::string_view name) const;
  [[nodiscard]] const std::vector<std::unique_ptr<Function>>& functions() const {
    return functions_;
  }
  /// Returns the function that is called at this token, template arguments or not; null: it is not
  /// of this file, or the token begins no call.
  [[nodiscard]] const Function* called_at(std::size_t token) const;
  /// Returns the innermost statement of the function that holds the token.
  [[nodiscard]] static const Statement& statement_at(const Function& function, std::size_t token);
  /// Returns whether the statement begins a line, so that another fits in front of it.
  [[nodiscard]] bool begins_line(std::size_t token) const {
    return tokens_[token].space.find('\n') != std::string_view::npos;
  }

  [[nodiscard]] const emulate::TokenStream& tokens() const { return tokens_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] int line(std::size_t token) const { return lines_[token]; }
  /// Returns the line as it is in the file, without leading blanks.
  [[nodiscard]] std::string text(std::size_t begin, std::size_t end) const;
  [[nodiscard]] std::string text(const Statement& one) const { return text(one.begin, one.end); }
  /// Returns whether the call at this token is a barrier of the block, or (`warp`) at least of a
  /// warp.
  [[nodiscard]] bool is_barrier(std::size_t token, bool warp) const;
  [[nodiscard]] bool mentions(std::size_t begin, std::size_t end, std::string_view word) const;
  [[nodiscard]] bool mentions_any(std::size_t begin, std::size_t end, const Names& names) const;
  /// Returns whether all threads of a block (or of a warp) take the same way there.
  [[nodiscard]] bool uniform(const Function& function, const Statement& one, bool warp) const;
  /// Returns the names of a function's parameters, in their order.
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

/// A preprocessed source by a name of its own. The text is never freed.
struct PreprocessedText {
  std::string name;
  const std::string* text;
};

/// Returns preprocessed sources of the program and of libraries loaded so far; `rewritten`: as
/// they were compiled.
std::vector<PreprocessedText> preprocessed_texts(bool rewritten);

/// Returns the tree of a file of the program, by the path that findings tell; null: it cannot be
/// read.
const SourceTree* source_tree(const std::string& file);

/// Returns the text of such a file as it is, comments included; "": it cannot be read.
std::string source_text(const std::string& file);

}  // namespace rung::cuda
