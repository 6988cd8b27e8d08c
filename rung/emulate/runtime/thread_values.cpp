// SPDX-License-Identifier: Apache-2.0
// Evaluates source expressions for a single thread. Unknown expressions have no value.
#include "rung/emulate/runtime/thread_values.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "rung/emulate/brackets.hpp"
#include "rung/emulate/runtime/advise.hpp"

namespace rung::cuda {
namespace {

using emulate::Token;
using emulate::TokenKind;
using emulate::TokenStream;

constexpr int max_depth = 8;  // maximum chain of variables initialized from each other

bool is_builtin(std::string_view name) {
  return name == "threadIdx" || name == "blockIdx" || name == "blockDim" || name == "gridDim";
}

bool is_type(std::string_view name) {
  for (const char* type : {"int", "unsigned", "long", "short", "char", "size_t", "int64_t",
                           "int32_t", "uint32_t", "uint64_t", "const"}) {
    if (name == type) return true;
  }
  return false;
}
bool is_unsigned_type(std::string_view name) {
  for (const char* type :
       {"unsigned", "size_t", "uint", "uint32_t", "uint64_t", "uint16_t", "uint8_t"}) {
    if (name == type) return true;
  }
  return false;
}

}  // namespace

/// Recursive-descent parser: sum := product {(+|-) product}; product := unary {(*|/|%) unary};
/// unary := [-|+] primary.
class ThreadValues::Parser {
 public:
  Parser(const ThreadValues& values, TokenRange range, int depth)
      : values_(values),
        tokens_(values.tokens_),
        at_(range.begin),
        end_(range.end),
        depth_(depth) {}

  std::optional<std::int64_t> all() {
    const auto result = sum();
    return at_ == end_ ? result : std::nullopt;
  }

 private:
  using Value = std::optional<std::int64_t>;

  [[nodiscard]] bool next_is(std::string_view symbol) const {
    return at_ < end_ && tokens_[at_].is(symbol);
  }
  Value sum() {
    Value left = product();
    while (left.has_value() && (next_is("+") || next_is("-"))) {
      const bool adds = tokens_[at_++].is("+");
      const Value right = product();
      if (!right.has_value()) return right;
      left = adds ? *left + *right : *left - *right;
    }
    return left;
  }
  Value product() {
    Value left = unary();
    while (left.has_value() && (next_is("*") || next_is("/") || next_is("%"))) {
      const std::string_view symbol = tokens_[at_++].text;
      const Value right = unary();
      if (!right.has_value() || (symbol != "*" && *right == 0)) return std::nullopt;
      left = symbol == "*" ? *left * *right : symbol == "/" ? *left / *right : *left % *right;
    }
    return left;
  }
  Value unary() {
    if (next_is("-") || next_is("+")) {
      const bool negates = tokens_[at_++].is("-");
      const Value value = unary();
      return value.has_value() && negates ? Value(-*value) : value;
    }
    return primary();
  }
  Value primary() {
    if (at_ >= end_) return std::nullopt;
    const Token& token = tokens_[at_];
    if (token.is("(")) return bracketed();
    if (token.kind == TokenKind::number) {
      ++at_;
      const std::string text(token.text);
      char* rest = nullptr;
      const std::int64_t value = std::strtoll(text.c_str(), &rest, 0);
      const bool suffix = std::string_view(rest).find_first_not_of("uUlL") == std::string::npos;
      return suffix ? Value(value) : std::nullopt;
    }
    if (!token.is_identifier()) return std::nullopt;
    ++at_;
    if (token.is("static_cast") && next_is("<")) {
      while (at_ < end_ && !tokens_[at_].is(">")) ++at_;
      ++at_;
      return next_is("(") ? bracketed() : std::nullopt;
    }
    if (is_type(token.text) && next_is("(")) return bracketed();
    if (next_is(".") && is_builtin(token.text)) {
      at_ += 2;
      return values_.builtin(token.text, tokens_[at_ - 1].text);
    }
    // A call, an array element or a member.
    if (next_is("(") || next_is("[") || next_is(".") || next_is("->") || next_is("::")) {
      return std::nullopt;
    }
    return values_.value_of(token.text, depth_);
  }
  /// Parses (sum), or a cast before a unary expression.
  Value bracketed() {
    const std::size_t close = tokens_.closing(at_);
    if (close >= end_) return std::nullopt;
    bool cast = close > at_ + 1;
    for (std::size_t i = at_ + 1; i < close; ++i) cast &= is_type(tokens_[i].text);
    const TokenRange inner{at_ + 1, close};
    at_ = close + 1;
    return cast ? unary() : Parser(values_, inner, depth_).all();
  }

  const ThreadValues& values_;
  const TokenStream& tokens_;
  std::size_t at_, end_;
  int depth_;
};

ThreadValues::ThreadValues(const SourceTree& tree, const Function& function,
                           const simt::record::Finding& finding)
    : tree_(tree), tokens_(tree.tokens()), function_(function), finding_(finding) {}

std::optional<std::int64_t> ThreadValues::value(TokenRange range) const { return value(range, 0); }

std::optional<std::int64_t> ThreadValues::value(TokenRange range, int depth) const {
  if (range.begin >= range.end || depth > max_depth) return std::nullopt;
  return Parser(*this, range, depth).all();
}

std::optional<bool> ThreadValues::truth(TokenRange range) const {
  while (tokens_[range.begin].is("(") && tokens_.closing(range.begin) + 1 == range.end) {
    range = {range.begin + 1, range.end - 1};
  }
  // Splits at the operator with the lowest precedence outside brackets.
  for (const char* symbol : {"||", "&&"}) {
    std::optional<bool> all;
    bool split = false, unknown = false;
    std::size_t begin = range.begin;
    // A true operand decides ||; a false operand decides &&.
    const bool decides = std::string_view(symbol) == "||";
    const auto take = [&](std::size_t end) {
      const auto part = truth({begin, end});
      unknown |= !part.has_value();
      if (part == decides) all = decides;
    };
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (tokens_[i].is(symbol)) {
        take(i);
        begin = i + 1;
        split = true;
      } else if (emulate::opens(tokens_[i])) {
        i = tokens_.closing(i);
      }
    }
    if (!split) continue;
    take(range.end);
    if (all.has_value() || unknown) return all;
    return !decides;
  }
  if (tokens_[range.begin].is("!")) {
    const auto part = truth({range.begin + 1, range.end});
    return part.has_value() ? std::optional(!*part) : part;
  }
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (emulate::opens(tokens_[i])) i = tokens_.closing(i);
    const bool differs = tokens_[i].is("!") && tokens_[i + 1].is("=");
    for (const char* symbol : {"<", ">", "<=", ">=", "==", "!"}) {
      if (!tokens_[i].is(symbol)) continue;
      const auto left = value({range.begin, i});
      const auto right = value({i + (differs ? 2 : 1), range.end});
      if (!left.has_value() || !right.has_value()) return std::nullopt;
      if (differs) return *left != *right;
      const std::string_view comparison = symbol;
      if (comparison == "==") return *left == *right;
      const bool less = comparison[0] == '<';
      const bool equal = comparison.size() == 2 && *left == *right;
      return equal || (less ? *left < *right : *left > *right);
    }
  }
  const auto number = value(range);
  return number.has_value() ? std::optional(*number != 0) : std::nullopt;
}

std::optional<std::int64_t> ThreadValues::builtin(std::string_view name,
                                                  std::string_view axis) const {
  const auto of = [&](const auto& v) -> std::optional<std::int64_t> {
    if (axis == "x") return v.x;
    if (axis == "y") return v.y;
    if (axis == "z") return v.z;
    return std::nullopt;
  };
  if (name == "threadIdx") return of(finding_.thread);
  if (name == "blockIdx") return of(finding_.block);
  if (name == "blockDim") return of(finding_.block_extent);
  return std::nullopt;
}

/// Returns the first token of the statement, parameter, or loop header that contains this token.
std::size_t ThreadValues::statement_begin(std::size_t token) const {
  while (token > 0) {
    const Token& before = tokens_[token - 1];
    if (before.is(";") || before.is("{") || before.is("}") || before.is("(")) break;
    if (emulate::closes(before)) {
      const std::size_t open = tokens_.opening(token - 1);
      if (open >= token) break;
      token = open;
    } else {
      --token;
    }
  }
  return token;
}

std::size_t ThreadValues::value_end(std::size_t begin) const {
  std::size_t i = begin;
  while (i < tokens_.size() && !tokens_[i].is(";") && !tokens_[i].is(",") &&
         !emulate::closes(tokens_[i])) {
    i = emulate::opens(tokens_[i]) ? tokens_.closing(i) + 1 : i + 1;
  }
  return i;
}

ThreadValues::Variable ThreadValues::variable(std::string_view name) const {
  Variable found;
  const auto declare = [&](std::size_t token, std::size_t first) {
    for (std::size_t i = first; i < token; ++i) {
      if (tokens_[i].is("=")) break;
      found.is_unsigned |= is_unsigned_type(tokens_[i].text);
      found.deduced |= tokens_[i].is("auto");
    }
  };
  for (std::size_t i = function_.parameters_begin; i < function_.parameters_end; ++i) {
    if (!tokens_[i].is(name)) continue;
    std::size_t first = i;
    while (first > function_.parameters_begin && !tokens_[first - 1].is(",")) --first;
    declare(i, first);
  }
  const auto twice = [&](std::size_t i, const char* symbol) {
    return tokens_[i].is(symbol) && tokens_[i + 1].is(symbol);
  };
  for (std::size_t i = function_.body.begin + 1; i < function_.body.end; ++i) {
    if (!tokens_[i].is(name) || tokens_[i - 1].is(".") || tokens_[i - 1].is("->")) continue;
    const Token& next = tokens_[i + 1];
    const bool lowered = twice(i + 1, "-") || (i >= 2 && twice(i - 2, "-")) ||
                         (next.is("-") && tokens_[i + 2].is("="));
    const bool operates = next.text.size() == 1 &&
                          std::string_view("+-*/%&|^").find(next.text[0]) != std::string_view::npos;
    const bool compound = operates && tokens_[i + 2].is("=");
    found.lowered |= lowered;
    found.stepped |= lowered || compound || twice(i + 1, "+") || (i >= 2 && twice(i - 2, "+")) ||
                     (next.is("<<") && tokens_[i + 2].is("=")) ||
                     (next.is(">>") && tokens_[i + 2].is("="));
    // A variable whose address is taken may be assigned at any point.
    found.stepped |= tokens_[i - 1].is("&") && (tokens_[i - 2].is("(") || tokens_[i - 2].is(","));
    if (next.is("=")) found.values.push_back({i + 2, value_end(i + 2)});
    const std::size_t first = statement_begin(i);
    const bool declares = tokens_[first].is_identifier() && tokens_[first + 1].is_identifier() &&
                          !tokens_[first].is("return") && !tokens_[first].is("else");
    if (declares && (tokens_[i - 1].is_identifier() || tokens_[i - 1].is(","))) {
      declare(i, first);
      if (next.is("(") || next.is("{")) {
        found.values.push_back({i + 2, tokens_.closing(i + 1)});
      }
    }
  }
  return found;
}

bool ThreadValues::is_parameter(std::string_view name) const {
  const std::vector<std::string> names = tree_.parameters(function_);
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<std::int64_t> ThreadValues::value_of(std::string_view name, int depth) const {
  if (name == "warpSize") return 32;
  const Variable known = variable(name);
  if (known.stepped || known.values.size() > 1) return std::nullopt;
  if (known.values.size() == 1) return value(known.values.front(), depth + 1);
  if (!is_parameter(name)) return constant(name, depth);
  const std::vector<std::string> names = tree_.parameters(function_);
  if (!function_.kernel) return value_passed(name, depth);
  if (kernel_of(tree_, finding_) != &function_) return std::nullopt;
  for (const auto& [number, integer] : finding_.integers) {
    const auto which = static_cast<std::size_t>(number);
    if (which < names.size() && names[which] == name) return integer;
  }
  return std::nullopt;
}

/// Returns the arguments that calls pass for a parameter of the function, each with the caller.
std::vector<std::pair<const Function*, TokenRange>> ThreadValues::passed(
    std::string_view name) const {
  std::vector<std::pair<const Function*, TokenRange>> list;
  const std::vector<std::string> names = tree_.parameters(function_);
  const auto which = std::find(names.begin(), names.end(), name) - names.begin();
  for (const auto& caller : tree_.functions()) {
    if (caller.get() == &function_) continue;
    for (std::size_t i = caller->body.begin; i < caller->body.end; ++i) {
      if (tree_.called_at(i) != &function_ || !tokens_[i + 1].is("(")) continue;
      std::size_t begin = i + 2;
      for (auto left = which; left > 0 && begin < tokens_.closing(i + 1); --left) {
        begin = value_end(begin) + 1;
      }
      list.emplace_back(caller.get(), TokenRange{begin, value_end(begin)});
    }
  }
  return list;
}

/// Returns the value that all calls pass for a parameter of a function that the kernel calls.
std::optional<std::int64_t> ThreadValues::value_passed(std::string_view name, int depth) const {
  std::optional<std::int64_t> common;
  for (const auto& [caller, argument] : passed(name)) {
    const auto value = ThreadValues(tree_, *caller, finding_).value(argument, depth + 1);
    if (!value.has_value() || (common.has_value() && common != value)) return std::nullopt;
    common = value;
  }
  return common;
}

/// Returns the value of a const or constexpr variable outside functions.
std::optional<std::int64_t> ThreadValues::constant(std::string_view name, int depth) const {
  std::optional<std::int64_t> found;
  for (std::size_t i = 1; i + 2 < tokens_.size(); ++i) {
    if (!tokens_[i].is(name) || !tokens_[i + 1].is("=")) continue;
    const std::size_t first = statement_begin(i);
    if (!tree_.mentions(first, i, "const") && !tree_.mentions(first, i, "constexpr")) continue;
    if (found.has_value()) return std::nullopt;
    found = value({i + 2, value_end(i + 2)}, depth + 1);
    if (!found.has_value()) return found;
  }
  return found;
}

bool ThreadValues::may_be_negative(TokenRange range) const { return may_be_negative(range, 0); }

bool ThreadValues::may_be_negative(TokenRange range, int depth) const {
  if (depth > max_depth) return false;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const Token& token = tokens_[i];
    if (token.is("-")) return true;
    const bool call = token.is("(") && i > range.begin && tokens_[i - 1].is_identifier() &&
                      !is_type(tokens_[i - 1].text);
    if (call || token.is("[")) {
      i = tokens_.closing(i);
    } else if (token.is_identifier() && !tokens_[i + 1].is("(") && !tokens_[i - 1].is(".")) {
      const Variable known = variable(token.text);
      if (known.lowered) return true;
      for (const TokenRange& one : known.values) {
        const bool own = range.begin <= one.begin && one.end <= range.end;
        if (!own && may_be_negative(one, depth + 1)) return true;
      }
      if (function_.kernel || !is_parameter(token.text)) continue;
      for (const auto& [caller, argument] : passed(token.text)) {
        if (ThreadValues(tree_, *caller, finding_).may_be_negative(argument, depth + 1)) {
          return true;
        }
      }
    }
  }
  return false;
}

bool ThreadValues::may_grow(TokenRange range) const {
  if (tree_.mentions(range.begin, range.end, "+")) return true;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (!tokens_[i].is_identifier() || tokens_[i - 1].is(".")) continue;
    for (const TokenRange& one : variable(tokens_[i].text).values) {
      const bool own = tree_.mentions(one.begin, one.end, "threadIdx");
      if (!own && tree_.mentions(one.begin, one.end, "+")) return true;
    }
    if (function_.kernel || !is_parameter(tokens_[i].text)) continue;
    for (const auto& [caller, argument] : passed(tokens_[i].text)) {
      if (ThreadValues(tree_, *caller, finding_).may_grow(argument)) return true;
    }
  }
  return false;
}

bool ThreadValues::is_unsigned(TokenRange range) const { return is_unsigned(range, 0); }

bool ThreadValues::is_unsigned(TokenRange range, int depth) const {
  if (depth > max_depth || tree_.mentions(range.begin, range.end, "int") ||
      tree_.mentions(range.begin, range.end, "long")) {
    return false;
  }
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const Token& token = tokens_[i];
    if (token.is("[")) {
      i = tokens_.closing(i);
    } else if (is_builtin(token.text) || is_unsigned_type(token.text)) {
      return true;
    } else if (token.is_identifier() && !tokens_[i - 1].is(".")) {
      const Variable known = variable(token.text);
      if (known.is_unsigned) return true;
      if (known.deduced && known.values.size() == 1 && is_unsigned(known.values[0], depth + 1)) {
        return true;
      }
    }
  }
  return false;
}

bool ThreadValues::is_uniform(TokenRange range) const {
  const std::vector<std::string> names = tree_.parameters(function_);
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const Token& token = tokens_[i];
    if (token.is("(") && tokens_[i - 1].is_identifier()) return false;  // a call
    if (!token.is_identifier() || is_type(token.text)) continue;
    const Variable known = variable(token.text);
    if (known.stepped || !known.values.empty() || is_builtin(token.text)) return false;
    const bool parameter = std::find(names.begin(), names.end(), token.text) != names.end();
    if (parameter ? !function_.kernel : !constant(token.text, 0).has_value()) return false;
  }
  return true;
}

std::optional<TokenRange> ThreadValues::first_value(std::string_view name,
                                                    const Statement& loop) const {
  for (std::size_t i = loop.header_begin; i < loop.header_end; ++i) {
    if (tokens_[i].is(";")) break;
    if (tokens_[i].is(name) && tokens_[i + 1].is("=")) return TokenRange{i + 2, value_end(i + 2)};
  }
  return std::nullopt;
}

}  // namespace rung::cuda
