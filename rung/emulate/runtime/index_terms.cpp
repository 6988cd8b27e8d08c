// SPDX-License-Identifier: Apache-2.0
// Splits indices into terms, and derives the conditions of guards.
#include "rung/emulate/runtime/index_terms.hpp"

#include <algorithm>

#include "rung/emulate/brackets.hpp"
#include "rung/emulate/runtime/advise.hpp"

namespace rung::cuda {
namespace {

using emulate::TokenKind;
using emulate::TokenStream;
using simt::record::Finding;

class Splitter {
 public:
  Splitter(const SourceTree& tree, const Finding& finding, const Function& function)
      : tree_(tree),
        tokens_(tree.tokens()),
        finding_(finding),
        function_(function),
        values_(tree, function, finding) {}

  void split(TokenRange range, std::int64_t extent, const std::string& bound) {
    while (tokens_[range.begin].is("(") && tokens_.closing(range.begin) + 1 == range.end) {
      range = {range.begin + 1, range.end - 1};
    }
    TokenRange rows, width, column;
    if (!split_once(range, rows, width, column)) {
      terms.push_back({range, extent, bound});
      return;
    }
    const std::int64_t columns = *values_.value(width);
    const std::string name = tree_.text(width.begin, width.end);
    split(rows, extent / columns, name_of(extent / columns, name));
    split(column, columns, name);
  }

  /// Returns the name of a kernel parameter with this value, preferably not `except`; the number if
  /// there is none.
  [[nodiscard]] std::string name_of(std::int64_t value, const std::string& except = "") const {
    const Function* const kernel = kernel_of(tree_, finding_);
    std::string found;
    if (kernel == &function_) {
      const std::vector<std::string> names = tree_.parameters(*kernel);
      for (const auto& [number, integer] : finding_.integers) {
        const auto which = static_cast<std::size_t>(number);
        if (integer != value || which >= names.size()) continue;
        if (found.empty() || found == except) found = names[which];
      }
    }
    return found.empty() ? std::to_string(value) : found;
  }

  std::vector<IndexTerm> terms;

 private:
  /// Returns the tokens outside brackets that equal this symbol.
  [[nodiscard]] std::vector<std::size_t> outer(TokenRange range, std::string_view symbol) const {
    std::vector<std::size_t> list;
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (tokens_[i].is(symbol)) list.push_back(i);
      if (emulate::opens(tokens_[i])) i = tokens_.closing(i);
    }
    return list;
  }
  /// Returns true if the expression can be a row length: a parameter or constant with a known
  /// value.
  [[nodiscard]] bool is_width(TokenRange range) const {
    if (range.begin >= range.end || tokens_[range.begin].kind == TokenKind::number) return false;
    const auto value = values_.value(range);
    return value.has_value() && *value > 0 &&
           !tree_.mentions_any(range.begin, range.end, function_.varying) &&
           !tree_.mentions(range.begin, range.end, "blockDim") && !depends_on_block(range, 0);
  }
  [[nodiscard]] bool depends_on_block(TokenRange range, int depth) const {
    constexpr int deepest = 4;
    if (tree_.mentions(range.begin, range.end, "blockIdx")) return true;
    for (std::size_t i = range.begin; i < range.end && depth < deepest; ++i) {
      if (!tokens_[i].is_identifier()) continue;
      for (const TokenRange& one : values_.settings(tokens_[i].text)) {
        if (depends_on_block(one, depth + 1)) return true;
      }
    }
    return false;
  }
  /// Parses rows * width + column, with operands in any order.
  bool split_once(TokenRange range, TokenRange& rows, TokenRange& width, TokenRange& column) const {
    const std::vector<std::size_t> pluses = outer(range, "+");
    if (pluses.empty() || pluses.front() == range.begin) return false;
    for (const bool first : {true, false}) {
      const TokenRange product = first ? TokenRange{range.begin, pluses.front()}
                                       : TokenRange{pluses.back() + 1, range.end};
      column = first ? TokenRange{pluses.front() + 1, range.end}
                     : TokenRange{range.begin, pluses.back()};
      const std::vector<std::size_t> stars = outer(product, "*");
      if (stars.empty() || !outer(product, "-").empty()) continue;
      // One factor is the row index, the product of the others the row length: z * (height *
      // width).
      rows = {product.begin, stars.front()};
      width = {stars.front() + 1, product.end};
      if (is_width(width)) return true;
      width = {product.begin, stars.back()};
      rows = {stars.back() + 1, product.end};
      if (is_width(width)) return true;
    }
    return false;
  }

  const SourceTree& tree_;
  const TokenStream& tokens_;
  const Finding& finding_;
  const Function& function_;
  ThreadValues values_;
};

std::string in_parentheses(const std::string& text) {
  const bool plain = text.find_first_of("&|^<>?=") == std::string::npos;
  return plain ? text : "(" + text + ")";
}

}  // namespace

std::vector<IndexTerm> terms_of(const SourceTree& tree, const Finding& finding,
                                const IndexAccess& access, std::int64_t count) {
  Splitter splitter(tree, finding, *access.spot.function);
  splitter.split(access.index(), count, splitter.name_of(count));
  return splitter.terms;
}

std::string condition_of(const SourceTree& tree, const Finding& finding, const IndexAccess& access,
                         const WrongIndex& wrong, bool any_thread) {
  const TokenStream& tokens = tree.tokens();
  const ThreadValues values(tree, *access.spot.function, finding);
  std::vector<IndexTerm> terms = terms_of(tree, finding, access, wrong.count);
  // A uniform index is itself wrong; a guard would not help.
  if (values.is_uniform(access.index())) return "";
  if (terms.size() == 1) {
    // Row-offset arrays have one element more than there are rows: row + 1 <= rows.
    TokenRange& range = terms[0].range;
    const Splitter names(tree, finding, *access.spot.function);
    const std::string one_less = names.name_of(wrong.count - 1);
    const bool next = range.end - range.begin > 2 && tokens[range.end - 2].is("+") &&
                      tokens[range.end - 1].is("1");
    if (next && one_less != std::to_string(wrong.count - 1)) {
      range.end -= 2;
      terms[0].bound = one_less;
      --terms[0].extent;
    }
  }
  const bool any_negative = std::any_of(terms.begin(), terms.end(), [&](const IndexTerm& term) {
    return values.may_be_negative(term.range);
  });
  std::string condition;
  bool all_hold = true;  // all conditions hold for the failing thread
  const auto add = [&](const std::string& part, std::optional<bool> holds) {
    condition += (condition.empty() ? "" : " && ") + part;
    all_hold &= holds.value_or(false);
  };
  for (const IndexTerm& term : terms) {
    const std::optional<std::int64_t> value = values.value(term.range);
    const bool wraps = values.is_unsigned(term.range);
    const bool falls = any_negative ? values.may_be_negative(term.range) : wrong.before();
    const bool grows = values.may_grow(term.range);
    const std::string text = in_parentheses(tree.text(term.range.begin, term.range.end));
    if (falls && !wraps) {
      add(text + " >= 0", value.has_value() ? std::optional(*value >= 0) : std::nullopt);
    }
    if (!wrong.before() || grows || (falls && wraps)) {
      const bool wrapped = wraps && value.has_value() && *value < 0;
      add(text + " < " + term.bound,
          value.has_value() ? std::optional(*value < term.extent && !wrapped) : std::nullopt);
    }
  }
  return all_hold && !any_thread ? "" : condition;
}

}  // namespace rung::cuda
