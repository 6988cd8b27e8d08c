// SPDX-License-Identifier: Apache-2.0
// Kernel launches and the kernels themselves.
#include <algorithm>
#include <map>
#include <vector>

#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {
namespace {

bool opens(const Token& token) { return token.is("(") || token.is("[") || token.is("{"); }
bool closes(const Token& token) { return token.is(")") || token.is("]") || token.is("}"); }

/// The < that belongs to the template argument list that ends with the > or >> at `last`.
std::size_t opening_angle(const TokenStream& tokens, std::size_t last) {
  int depth = 0;
  for (std::size_t i = last + 1; i > 0; --i) {
    const Token& token = tokens[i - 1];
    if (token.is(">")) depth += 1;
    if (token.is(">>")) depth += 2;
    if (token.is("<")) depth -= 1;  // << is a shift: two lists never open at once
    if (depth <= 0) return i - 1;
    if (token.is(";")) break;
    if (closes(token)) {
      const std::size_t open = tokens.opening(i - 1);
      if (open >= tokens.size()) break;
      i = open + 1;
    }
  }
  return tokens.size();
}

/// The first token of the postfix expression that ends in front of `end`: what is launched.
std::size_t first_of_callee(const TokenStream& tokens, std::size_t end) {
  std::size_t i = end;
  while (i > 0) {
    --i;
    if (tokens[i].is(">") || tokens[i].is(">>")) {
      i = opening_angle(tokens, i);
      if (i >= tokens.size()) return end;
      continue;  // with the name in front of the template arguments
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

/// The >> of the >>> that ends the configuration which begins at `begin`; size() if none does.
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

/// The arguments between the brackets at open and close. Commas within template argument lists
/// separate nothing.
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
      // A list only if it closes before the argument's end: else it compares.
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

/// Null pointer constants mean something as literals only, and lists in braces have no type.
bool stays_literal(const TokenStream& tokens, const Range& argument) {
  const Token& first = tokens[argument.begin];
  if (first.is("{")) return true;
  return argument.end == argument.begin + 1 &&
         (first.is("0") || first.is("__null") || first.is("NULL") || first.is("0L"));
}

std::string quoted(const std::string& text) {
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
  // The return type asks whether the kernel can be called with arguments of these kinds.
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
  tokens.insert_before(callee, "::rung::cuda::launcher(" + quoted(name) + ", [=](" + parameters +
                                   ") __attribute__((no_sanitize(\"thread\"))) -> decltype(" +
                                   name + "(" + kinds + ")) { ");
  tokens.replace(chevron, "(" + values + "); }).with(");
  tokens.erase(chevron + 1);
  tokens.replace(close, ")");
  tokens.erase(close + 1);
}

}  // namespace

void rewrite_launches(TokenStream& tokens) {
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (tokens[i].is("<<") && tokens[i + 1].is("<")) rewrite_launch(tokens, i);
  }
}

namespace {
struct KernelDefinition {
  std::size_t word;  // __global__
  std::size_t name;
  std::size_t body;  // its {; size() for a declaration
  std::string path;  // its name behind those of its namespaces
};

KernelDefinition read_kernel(const TokenStream& tokens, std::size_t word) {
  // The parameter list is the first bracket that follows the function's name.
  std::size_t at = word + 1;
  while (at < tokens.size() && !tokens[at].is("(")) {
    if (tokens[at].is("__attribute__") && tokens[at + 1].is("(")) at = tokens.closing(at + 1);
    ++at;
  }
  const std::size_t name = at - 1;
  at = at < tokens.size() ? tokens.closing(at) : at;
  while (at < tokens.size() && !tokens[at].is("{") && !tokens[at].is(";")) ++at;
  return {word, name, tokens[at].is("{") ? at : tokens.size(), ""};
}

/// "<T, N, Rest...>" for a kernel template, "" for a function. False: an explicit specialisation,
/// or a template that is too odd to read.
bool template_arguments(const TokenStream& tokens, std::size_t word, std::string& arguments) {
  std::size_t i = word;
  while (i > 0 && tokens[i - 1].kind == TokenKind::identifier) --i;  // static, inline ...
  if (i == 0 || !tokens[i - 1].is(">")) return true;
  const std::size_t last = i - 1;
  const std::size_t open = opening_angle(tokens, last);
  if (open >= tokens.size() || open == 0 || !tokens[open - 1].is("template")) return false;
  std::string name;
  bool pack = false, found = false;
  int depth = 0;
  for (std::size_t at = open + 1; at <= last; ++at) {
    const Token& token = tokens[at];
    if (depth == 0 && (token.is(",") || token.is("=") || at == last)) {
      if (!found && name.empty()) return false;
      if (!found) arguments += (arguments.empty() ? "<" : ", ") + name + (pack ? "..." : "");
      found = token.is("=");
      if (!found) {
        name.clear();
        pack = false;
      }
    } else if (token.is("<") || opens(token)) {
      ++depth;
    } else if (token.is(">") || closes(token)) {
      --depth;
    } else if (token.is(">>")) {
      depth -= 2;
    } else if (token.kind == TokenKind::identifier) {
      name = token.text;
    } else if (token.is(".")) {
      pack = true;
    }
  }
  if (arguments.empty()) return false;
  arguments += ">";
  return true;
}

/// The namespaces that are open where the tokens have been seen so far.
struct Namespaces {
  std::string path;                  // "a::b::"
  std::vector<std::size_t> lengths;  // of the path, where each bracket { stands that is open
  void see(const TokenStream& tokens, std::size_t i) {
    if (tokens[i].is("}") && !lengths.empty()) {
      path.resize(lengths.back());
      lengths.pop_back();
    }
    if (!tokens[i].is("{")) return;
    lengths.push_back(path.size());
    std::size_t begin = i;
    while (!tokens[begin].is("namespace") && begin > 0 &&
           (tokens[begin - 1].kind == TokenKind::identifier || tokens[begin - 1].is("::"))) {
      --begin;
    }
    if (tokens[begin].is("namespace")) path += tokens.text(begin + 1, i) + "::";
  }
};

}  // namespace

void rewrite_kernels(TokenStream& tokens) {
  std::vector<KernelDefinition> kernels;
  std::map<std::string, int> definitions;
  Namespaces namespaces;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    namespaces.see(tokens, i);
    // A word of CUDA's; as a macro it would spoil the attribute of that name.
    if (tokens[i].is("__noinline__") && !tokens[i - 1].is("(") && !tokens[i - 1].is(",")) {
      tokens.replace(i, "__attribute__((noinline))");
    }
    if (!tokens[i].is("__rung_global__")) continue;
    tokens.erase(i);
    kernels.push_back(read_kernel(tokens, i));
    KernelDefinition& one = kernels.back();
    one.path = namespaces.path + std::string(tokens[one.name].text);
    if (one.body < tokens.size()) ++definitions[one.path];
  }
  for (const KernelDefinition& one : kernels) {
    if (one.body >= tokens.size()) continue;
    const std::string_view name = tokens[one.name].text;
    std::string values;
    // Where its name means one function, it can be launched by its address too.
    const bool unique = definitions[one.path] == 1 &&
                        tokens[one.name].kind == TokenKind::identifier &&
                        template_arguments(tokens, one.word, values);
    const std::string self =
        unique ? ", ::rung::cuda::only_kernel(&" + std::string(name) + values + ")" : "";
    tokens.insert_after(one.body,
                        " struct rung_kernel {}; ::rung::cuda::enter<rung_kernel" + self + ">();");
  }
}

}  // namespace rung::emulate
