// SPDX-License-Identifier: Apache-2.0
// Statements that drop the error of a call of the runtime: cudaMemcpy(...); by itself. If the call
// fails, and the program never asks for its last error, it goes on as if nothing had happened.
#include <algorithm>
#include <array>

#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {
namespace {

/// Those after whose failure a program cannot do what it was written for.
constexpr std::array<std::string_view, 21> calls = {
    "cudaFuncSetAttribute", "cudaHostAlloc",        "cudaMalloc",
    "cudaMalloc3D",         "cudaMallocAsync",      "cudaMallocHost",
    "cudaMallocManaged",    "cudaMallocPitch",      "cudaMemcpy",
    "cudaMemcpy2D",         "cudaMemcpy2DAsync",    "cudaMemcpy3D",
    "cudaMemcpyAsync",      "cudaMemcpyFromSymbol", "cudaMemcpyPeer",
    "cudaMemcpyToArray",    "cudaMemcpyToSymbol",   "cudaMemcpyToSymbolAsync",
    "cudaMemset",           "cudaMemset2D",         "cudaMemsetAsync"};

/// Returns whether a statement may begin behind the token before i.
bool begins_statement(const TokenStream& tokens, std::size_t i) {
  do {
    if (i == 0) return false;
    --i;
  } while (tokens[i].kind == TokenKind::verbatim);
  for (const char* one : {";", "{", "}", "else", "do"}) {
    if (tokens[i].is(one)) return true;
  }
  if (!tokens[i].is(")")) return false;
  const std::size_t open = tokens.opening(i);
  if (open >= tokens.size() || open == 0) return false;
  const Token& before = tokens[open - 1];
  return before.is("if") || before.is("for") || before.is("while");
}

}  // namespace

void rewrite_ignored_errors(TokenStream& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::identifier || !tokens[i + 1].is("(")) continue;
    const std::string_view name = tokens[i].text;
    if (!std::binary_search(calls.begin(), calls.end(), name)) continue;
    const std::size_t close = tokens.closing(i + 1);
    if (close >= tokens.size() || !tokens[close + 1].is(";")) continue;
    if (!begins_statement(tokens, i)) continue;
    tokens.insert_before(i, "::rung::cuda::ignored(");
    tokens.insert_after(close, ", \"" + std::string(name) + "\")");
  }
}

}  // namespace rung::emulate
