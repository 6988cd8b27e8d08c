// SPDX-License-Identifier: Apache-2.0
// Rewrites kernel launches.
#include <algorithm>
#include <vector>

#include "rung/emulate/brackets.hpp"
#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {
namespace {

/// Returns the first token of the callee, the postfix expression that ends before `end`.
std::size_t first_of_callee(const TokenStream& tokens, std::size_t end) {
  std::size_t i = end;
  while (i > 0) {
    --i;
    if (tokens[i].is(">") || tokens[i].is(">>")) {
      i = opening_angle(tokens, i);
      if (i >= tokens.size()) return end;
      continue;  // continues with the name before the template arguments
    }
    if (tokens[i].is(")") || tokens[i].is("]")) {
      const bool parenthesis = tokens[i].is(")");
      i = tokens.opening(i);
      if (i >= tokens.size() || i == 0) return end;
      const Token& before = tokens[i - 1];
      const bool more = before.kind == TokenKind::identifier || before.is(")") || before.is("]") ||
                        before.is(">");
      if (parenthesis && (!more || before.is("return") || before.is("else"))) return i;
      continue;
    }
    if (tokens[i].kind != TokenKind::identifier) return end;
    if (i == 0) return i;
    if (tokens[i - 1].is("template") && i >= 2) --i;
    const Token& before = tokens[i - 1];
    if (before.is("::")) {
      --i;
      const bool qualified =
          i > 0 && (tokens[i - 1].kind == TokenKind::identifier || tokens[i - 1].is(">"));
      if (!qualified || tokens[i - 1].is("return") || tokens[i - 1].is("else")) return i;
      continue;
    }
    if (!before.is(".") && !before.is("->")) return i;
    --i;
  }
  return end;
}

/// Returns the >> of the >>> that ends the launch configuration beginning at `begin`; size() if
/// there is none.
std::size_t closing_chevron(const TokenStream& tokens, std::size_t begin) {
  for (std::size_t i = begin; i < tokens.size(); ++i) {
    if (tokens[i].is(">>") && tokens[i + 1].is(">") && tokens[i + 2].is("(")) return i;
    if (opens(tokens[i])) {
      i = tokens.closing(i);
    } else if (tokens[i].is(";") || closes(tokens[i])) {
      break;
    }
  }
  return tokens.size();
}

struct Range {
  std::size_t begin, end;
};

/// Splits the arguments between the brackets at `open` and `close`. Commas in template argument
/// lists do not separate arguments.
std::vector<Range> arguments(const TokenStream& tokens, std::size_t open, std::size_t close) {
  std::vector<Range> list;
  std::size_t begin = open + 1;
  int angles = 0;
  for (std::size_t i = begin; i <= close; ++i) {
    if (i == close || (tokens[i].is(",") && angles == 0)) {
      if (i > begin) list.push_back({begin, i});
      begin = i + 1;
    } else if (opens(tokens[i])) {
      i = tokens.closing(i);
    } else if (tokens[i].is("<") && tokens[i - 1].kind == TokenKind::identifier) {
      // < opens a template argument list only if it closes before the argument's end; else it is a
      // comparison.
      int depth = 1;
      std::size_t end = i + 1;
      for (; end < close && depth > 0; ++end) {
        if (opens(tokens[end])) end = tokens.closing(end);
        if (tokens[end].is("<")) ++depth;
        if (tokens[end].is(">")) --depth;
        if (tokens[end].is(">>")) depth -= 2;
        if (tokens[end].is("&&") || tokens[end].is("||") || tokens[end].is(";")) break;
      }
      const Token& after = tokens[end];
      if (depth <= 0 && (after.is("(") || after.is("{") || after.is("::") || after.is(","))) {
        i = end - 1;
      }
    }
  }
  return list;
}

/// Returns true for null pointer constants, which are valid only as literals, and for braced lists,
/// which have no type.
bool stays_literal(const TokenStream& tokens, const Range& argument) {
  const Token& first = tokens[argument.begin];
  if (first.is("{")) return true;
  return argument.end == argument.begin + 1 &&
         (first.is("0") || first.is("__null") || first.is("NULL") || first.is("0L"));
}

std::string in_quotes(const std::string& text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c == '\n' || c == '\t' ? ' ' : c;
  }
  return literal + "\"";
}

void rewrite_launch(TokenStream& tokens, std::size_t chevron) {
  const std::size_t close = closing_chevron(tokens, chevron + 2);
  if (close >= tokens.size()) return;
  const std::size_t callee = first_of_callee(tokens, chevron);
  const std::size_t end = tokens.closing(close + 2);
  if (callee >= chevron || end >= tokens.size()) return;

  const std::vector<Range> given = arguments(tokens, close + 2, end);
  const bool pack = std::any_of(given.begin(), given.end(), [&](const Range& one) {
    return tokens[one.end - 1].is(".") && tokens[one.end - 2].is(".");
  });
  // The trailing return type tests whether the kernel accepts arguments of these types.
  std::string parameters, values, kinds;
  if (pack) {
    parameters = "auto&&... rung_a";
    values = "rung_a...";
    kinds = "static_cast<decltype(rung_a)>(rung_a)...";
  } else {
    for (std::size_t i = 0; i < given.size(); ++i) {
      const std::string name = "rung_a" + std::to_string(i);
      const char* comma = i == 0 ? "" : ", ";
      const bool literal = stays_literal(tokens, given[i]);
      parameters += comma + ("[[maybe_unused]] auto&& " + name);
      const std::string value = literal ? tokens.text(given[i].begin, given[i].end) : name;
      values += comma + value;
      kinds.append(comma).append(literal ? value : "static_cast<decltype(");
      if (!literal) kinds.append(name).append(")>(").append(name).append(")");
      if (literal) tokens.replace(given[i].begin, given[i].end, "0");
    }
  }
  std::string name = tokens.text(callee, chevron);
  name.erase(0, name.find_first_not_of(" \t\n"));
  tokens.insert_before(callee, "::rung::cuda::launcher(" + in_quotes(name) + ", [=](" + parameters +
                                   ") __attribute__((no_sanitize(\"thread\"))) -> decltype(" +
                                   name + "(" + kinds + ")) { ");
  tokens.replace(chevron, "(" + values + "); }).with(");
  tokens.erase(chevron + 1);
  tokens.replace(close, ")");
  tokens.erase(close + 1);
}

}  // namespace

void rewrite_launches_as_calls(TokenStream& tokens) {
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is("<<") || !tokens[i + 1].is("<")) continue;
    const std::size_t close = closing_chevron(tokens, i + 2);
    if (close >= tokens.size()) continue;
    std::string shape = tokens.text(i + 2, close);
    // Line breaks would change the line numbers of the following tokens.
    std::replace(shape.begin(), shape.end(), '\n', ' ');
    const std::size_t end = tokens.closing(close + 2);
    if (end < tokens.size() && shape.find('#') == std::string::npos) {
      tokens.insert_after(end, ", ::rung::cuda::launch_shape(" + shape + ")");
    }
    for (std::size_t at = i; at <= close + 1; ++at) {
      tokens.replace(at, std::string(tokens[at].text.size(), ' '));
    }
  }
}

void rewrite_launches(TokenStream& tokens) {
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (tokens[i].is("<<") && tokens[i + 1].is("<")) rewrite_launch(tokens, i);
  }
}

}  // namespace rung::emulate
