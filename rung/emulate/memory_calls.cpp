// SPDX-License-Identifier: Apache-2.0
// memcpy, memmove and memset: the compiler emits no hooks for their accesses, so calls are
// redirected to rung's versions. Functions of these names that the program defines are unaffected.
#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {
namespace {

/// Returns true if the name at `i` is a call of the library function, as opposed to a declaration
/// or another function.
bool is_memory_call(const TokenStream& tokens, std::size_t i) {
  if (i == 0 || !tokens[i + 1].is("(")) return false;
  const Token& before = tokens[i - 1];
  if (before.is("::")) {
    const Token& scope = i > 1 ? tokens[i - 2] : before;
    if (scope.kind != TokenKind::identifier || scope.is("return")) return true;
    return scope.is("std") && (i < 3 || !tokens[i - 3].is("::"));
  }
  if (before.kind == TokenKind::identifier) {
    return before.is("return") || before.is("else") || before.is("do");
  }
  return !before.is(".") && !before.is("->") && !before.is("*") && !before.is("&");
}

bool is_std(const TokenStream& tokens, std::size_t i) {
  return i > 1 && tokens[i - 1].is("::") && tokens[i - 2].is("std");
}

/// Returns true if the program declares a function with this name, to which unqualified calls may
/// refer.
bool declares(const TokenStream& tokens, std::string_view name) {
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is(name) || !tokens[i + 1].is("(") || is_memory_call(tokens, i)) continue;
    const Token& before = tokens[i - 1];
    if (!before.is(".") && !before.is("->") && !before.is("::")) return true;
  }
  return false;
}

void rewrite_calls(TokenStream& tokens, std::string_view name) {
  const bool own = declares(tokens, name);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is(name) || !is_memory_call(tokens, i)) continue;
    if (own && !is_std(tokens, i)) continue;
    for (std::size_t at = i; at > 0 && (tokens[at - 1].is("::") || tokens[at - 1].is("std"));
         --at) {
      tokens.erase(at - 1);
    }
    tokens.replace(i, "::rung::cuda::hooked::" + std::string(name));
  }
}

}  // namespace

void rewrite_memory_calls(TokenStream& tokens) {
  for (const std::string_view name : {"memcpy", "memmove", "memset"}) rewrite_calls(tokens, name);
}

}  // namespace rung::emulate
