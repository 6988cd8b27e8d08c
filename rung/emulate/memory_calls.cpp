// SPDX-License-Identifier: Apache-2.0
// memcpy, memmove and memset: the compiler calls no hook for what they access, so that they become
// calls of functions of ours that do.
#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {
namespace {

/// Whether the name at `i` is called there; it may as well be declared, or another function's.
bool is_call(const TokenStream& tokens, std::size_t i) {
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

}  // namespace

void rewrite_memory_calls(TokenStream& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view name = tokens[i].text;
    if (name != "memcpy" && name != "memmove" && name != "memset") continue;
    if (!is_call(tokens, i)) continue;
    for (std::size_t at = i; at > 0 && (tokens[at - 1].is("::") || tokens[at - 1].is("std"));
         --at) {
      tokens.erase(at - 1);
    }
    tokens.replace(i, "::rung::cuda::hooked::" + std::string(name));
  }
}

}  // namespace rung::emulate
