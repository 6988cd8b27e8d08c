// SPDX-License-Identifier: Apache-2.0
// Statements that discard the error of a runtime call, such as `cudaMemcpy(...);`. If the call
// fails and the program never queries its last error, the program continues with wrong data. Also
// statements that discard the answer of a query, which are no wait.
#include <algorithm>
#include <array>

#include "rung/emulate/rewrite.hpp"

namespace rung::emulate {
namespace {

/// Calls whose failure invalidates the program's result.
constexpr std::array<std::string_view, 21> calls = {
    "cudaFuncSetAttribute", "cudaHostAlloc",        "cudaMalloc",
    "cudaMalloc3D",         "cudaMallocAsync",      "cudaMallocHost",
    "cudaMallocManaged",    "cudaMallocPitch",      "cudaMemcpy",
    "cudaMemcpy2D",         "cudaMemcpy2DAsync",    "cudaMemcpy3D",
    "cudaMemcpyAsync",      "cudaMemcpyFromSymbol", "cudaMemcpyPeer",
    "cudaMemcpyToArray",    "cudaMemcpyToSymbol",   "cudaMemcpyToSymbolAsync",
    "cudaMemset",           "cudaMemset2D",         "cudaMemsetAsync"};

/// Queries that order nothing if their answer is discarded.
constexpr std::array<std::string_view, 2> queries = {"cudaEventQuery", "cudaStreamQuery"};

/// Returns true if a statement may begin at token i.
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
    const bool is_query = std::binary_search(queries.begin(), queries.end(), name);
    if (!is_query && !std::binary_search(calls.begin(), calls.end(), name)) continue;
    const std::size_t close = tokens.closing(i + 1);
    if (close >= tokens.size() || !tokens[close + 1].is(";")) continue;
    if (!begins_statement(tokens, i)) continue;
    if (is_query) {
      tokens.insert_before(i, "::rung::cuda::discard_answer(), ");
      continue;
    }
    tokens.insert_before(i, "::rung::cuda::ignored(");
    tokens.insert_after(close, ", \"" + std::string(name) + "\")");
  }
}

}  // namespace rung::emulate
