// SPDX-License-Identifier: Apache-2.0
// Statements that read, modify and write one element, and the equivalent atomic functions.
#include <algorithm>

#include "rung/emulate/brackets.hpp"
#include "rung/emulate/runtime/advise.hpp"

namespace rung::cuda {
namespace {

using emulate::TokenKind;
using emulate::TokenStream;

struct Range {
  std::size_t begin, end;
  [[nodiscard]] std::size_t size() const { return end - begin; }
};

bool alike(const TokenStream& tokens, Range a, Range b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!tokens[a.begin + i].is(tokens[b.begin + i].text)) return false;
  }
  return a.size() != 0;
}

/// Returns the first token with this text outside brackets; range.end if there is none.
std::size_t top_level(const TokenStream& tokens, Range range, std::string_view text) {
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (tokens[i].is(text)) return i;
    if (emulate::opens(tokens[i])) i = tokens.closing(i);
  }
  return range.end;
}

/// Returns the token = of an assignment.
std::size_t assignment(const TokenStream& tokens, Range range) {
  const std::size_t at = top_level(tokens, range, "=");
  if (at >= range.end || at == range.begin) return range.end;
  return tokens[at - 1].is("!") ? range.end : at;
}

const char* function_of(const emulate::Token& operation) {
  static constexpr std::pair<const char*, const char*> functions[] = {
      {"+", "Add"}, {"-", "Sub"}, {"|", "Or"}, {"&", "And"}, {"^", "Xor"}};
  for (const auto& [symbol, name] : functions) {
    if (operation.is(symbol)) return name;
  }
  return "";
}

const char* extremum(std::string_view word) {
  if (word == "max" || word == "fmaxf" || word == "fmax") return "Max";
  if (word == "min" || word == "fminf" || word == "fmin") return "Min";
  return nullptr;
}

/// Parses the operand of `target = value`, where `value` is target + operand, operand + target,
/// max(target, operand) or target > operand ? target : operand. Returns false for other forms.
bool read_value(const SourceTree& tree, Range target, Range value, Update& update) {
  const TokenStream& tokens = tree.tokens();
  const auto set = [&](const char* operation, std::size_t begin, std::size_t end) {
    update.operation = operation;
    update.operand = tree.text(begin, end);
    return begin < end;
  };
  const std::size_t size = target.size();
  if (extremum(tokens[value.begin].text) != nullptr && tokens[value.begin + 1].is("(") &&
      tokens.closing(value.begin + 1) + 1 == value.end) {
    const Range inside{value.begin + 2, value.end - 1};
    const std::size_t comma = top_level(tokens, inside, ",");
    const Range left{inside.begin, comma}, right{comma + 1, inside.end};
    const char* const name = extremum(tokens[value.begin].text);
    if (comma < inside.end && alike(tokens, target, left)) return set(name, right.begin, right.end);
    if (comma < inside.end && alike(tokens, target, right)) return set(name, left.begin, left.end);
    return false;
  }
  if (value.size() <= size + 1) return false;
  const char* const first = function_of(tokens[value.begin + size]);
  if (alike(tokens, target, {value.begin, value.begin + size}) && *first != '\0') {
    return set(first, value.begin + size + 1, value.end);
  }
  const std::size_t last = value.end - size - 1;
  const char* const after = function_of(tokens[last]);
  if (alike(tokens, target, {value.end - size, value.end}) && *after != '\0' &&
      std::string_view(after) != "Sub") {
    return set(after, value.begin, last);
  }
  return false;
}

/// Returns the statement `if (value > target) target = value;` that contains the assignment.
const Statement* comparison(const SourceTree& tree, const Statement& one, Range target, Range value,
                            Update& update) {
  const Statement* branch = one.parent;
  if (branch != nullptr && branch->kind == Statement::Kind::block && branch->parts.size() == 1) {
    branch = branch->parent;
  }
  if (branch == nullptr || branch->kind != Statement::Kind::branch || branch->parts.size() != 1) {
    return nullptr;
  }
  const TokenStream& tokens = tree.tokens();
  const Range head{branch->header_begin, branch->header_end};
  for (const char* symbol : {"<", ">"}) {
    const std::size_t at = top_level(tokens, head, symbol);
    if (at >= head.end) continue;
    const Range left{head.begin, at}, right{at + 1, head.end};
    const bool straight = alike(tokens, left, value) && alike(tokens, right, target);
    if (!straight && !(alike(tokens, left, target) && alike(tokens, right, value))) continue;
    update.operation = (*symbol == '>') == straight ? "Max" : "Min";
    update.operand = tree.text(value.begin, value.end);
    return branch;
  }
  return nullptr;
}

/// Returns the preceding statement in the same block that loads the element into this variable.
const Statement* load_of(const SourceTree& tree, const Statement& one, Range target,
                         std::string_view variable) {
  const TokenStream& tokens = tree.tokens();
  if (one.parent == nullptr) return nullptr;
  for (const auto& before : one.parent->parts) {
    if (before.get() == &one) break;
    const Range range{before->begin, before->end - 1};
    const std::size_t equals = assignment(tokens, range);
    if (before->kind == Statement::Kind::simple && equals < range.end &&
        tokens[equals - 1].is(variable) && alike(tokens, target, {equals + 1, range.end})) {
      return before.get();
    }
  }
  return nullptr;
}

}  // namespace

std::optional<Update> update_of(const SourceTree& tree, const Statement& one,
                                const std::string& array, bool elsewhere) {
  const TokenStream& tokens = tree.tokens();
  if (one.kind != Statement::Kind::simple || one.end - one.begin < 3) return std::nullopt;
  const Range all{one.begin, one.end - 1};  // without the ;
  Update update{&one, "", "", "", nullptr};
  Range target{all.begin, all.end};
  const auto twice = [&](std::size_t at) {
    return tokens[at].text == tokens[at + 1].text && (tokens[at].is("+") || tokens[at].is("-"));
  };
  const std::size_t equals = assignment(tokens, all);
  if (twice(all.begin) || twice(all.end - 2)) {
    const bool front = twice(all.begin);
    target = front ? Range{all.begin + 2, all.end} : Range{all.begin, all.end - 2};
    if (assignment(tokens, all) < all.end) return std::nullopt;
    update.operation = function_of(tokens[front ? all.begin : all.end - 1]);
    update.operand = "1";
  } else if (equals < all.end) {
    const emulate::Token& before = tokens[equals - 1];
    const Range value{equals + 1, all.end};
    if (before.kind == TokenKind::symbol && !before.is("]") && !before.is(")")) {
      target.end = equals - 1;
      update.operation = function_of(before);
      update.operand = tree.text(value.begin, value.end);
    } else {
      target.end = equals;
      if (const Statement* branch = comparison(tree, one, target, value, update)) {
        update.statement = branch;
      } else if (!read_value(tree, target, value, update)) {
        // Matches v = bins[b]; bins[b] = v + 1;
        update.load = load_of(tree, one, target, tokens[value.begin].text);
        update.operation = function_of(tokens[value.begin + 1]);
        update.operand = tree.text(value.begin + 2, value.end);
        if (update.load == nullptr || update.operation.empty()) return std::nullopt;
      }
    }
    const auto names = [&](std::size_t begin, std::size_t end) {
      return std::count_if(&tokens[begin], &tokens[begin] + (end - begin),
                           [&](const emulate::Token& token) { return token.is(array); });
    };
    const bool extreme = update.operation == "Max" || update.operation == "Min";
    const bool itself = update.operation.empty() || update.load != nullptr || extreme ||
                        before.kind != TokenKind::symbol || before.is("]") || before.is(")");
    if (!elsewhere && !array.empty() && names(value.begin, value.end) > (itself ? 1 : 0)) {
      return std::nullopt;
    }
  } else {
    return std::nullopt;
  }
  if (!array.empty() && !tree.mentions(target.begin, target.end, array)) return std::nullopt;
  update.target = tree.text(target.begin, target.end);
  return update;
}

simt::record::Fix replacement(const SourceTree& tree, const char* kind, const Statement& one,
                              std::string text) {
  return {kind, tree.file(), tree.line(one.begin), tree.text(one), std::move(text)};
}

}  // namespace rung::cuda
