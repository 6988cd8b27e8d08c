// SPDX-License-Identifier: Apache-2.0
// Matching and classification of brackets.
#include "rung/emulate/brackets.hpp"

namespace rung::emulate {

std::size_t opening_angle(const TokenStream& tokens, std::size_t last) {
  int depth = 0;
  for (std::size_t i = last + 1; i > 0; --i) {
    const Token& token = tokens[i - 1];
    if (token.is(">")) depth += 1;
    if (token.is(">>")) depth += 2;
    if (token.is("<")) depth -= 1;  // << is a shift operator: it never opens two lists
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

bool opens_body(const TokenStream& tokens, std::size_t brace) {
  bool parenthesis = false;
  for (std::size_t i = brace; i > 0; --i) {
    const Token& token = tokens[i - 1];
    if (token.is(";") || token.is("{") || token.is("}") || token.kind == TokenKind::verbatim) {
      break;
    }
    // extern "C" before a single function does not open a declaration block.
    if (token.is("namespace") || (token.kind == TokenKind::string && !parenthesis)) return false;
    if (token.is(")")) {
      parenthesis = true;
      const std::size_t open = tokens.opening(i - 1);
      if (open >= i) break;  // unmatched: not C++
      i = open + 1;
    }
    const bool type = token.is("struct") || token.is("class") || token.is("union");
    // `template <class T> void f() {` has a parameter list; `struct S : B<T> {` does not.
    if (type && !parenthesis) return false;
  }
  return true;
}

bool opens_namespace(const TokenStream& tokens, std::size_t brace) {
  bool parenthesis = false;
  for (std::size_t i = brace; i > 0; --i) {
    const Token& token = tokens[i - 1];
    if (token.is(";") || token.is("{") || token.is("}") || token.kind == TokenKind::verbatim) {
      return false;
    }
    parenthesis = parenthesis || token.is(")");
    if (token.is("namespace") || (token.kind == TokenKind::string && !parenthesis)) return true;
  }
  return false;
}

}  // namespace rung::emulate
