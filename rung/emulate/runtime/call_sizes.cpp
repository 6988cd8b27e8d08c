// SPDX-License-Identifier: Apache-2.0
// Parses runtime calls that allocate or copy memory.
#include "rung/emulate/runtime/call_sizes.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "rung/emulate/brackets.hpp"

namespace rung::cuda {
namespace {

using emulate::TokenKind;
using emulate::TokenStream;

constexpr int max_nesting = 6;  // maximum chain of variables initialized from each other

std::vector<TokenRange> arguments(const TokenStream& tokens, std::size_t open) {
  std::vector<TokenRange> list;
  const std::size_t close = tokens.closing(open);
  std::size_t begin = open + 1;
  for (std::size_t i = begin; i <= close && i < tokens.size(); ++i) {
    if (i == close || tokens[i].is(",")) {
      list.push_back({begin, i});
      begin = i + 1;
    } else if (emulate::opens(tokens[i])) {
      i = tokens.closing(i);
    }
  }
  return list;
}

/// Returns the opening parenthesis of the call with its name at `name`; 0 if it is not a call.
std::size_t call_bracket(const TokenStream& tokens, std::size_t name) {
  std::size_t open = name + 1;
  if (tokens[open].is("<")) {  // cudaMalloc<float>(...)
    while (open < tokens.size() && !tokens[open].is("(") && !tokens[open].is(";")) ++open;
  }
  return tokens[open].is("(") && tokens.closing(open) < tokens.size() ? open : 0;
}

std::string last_name(const TokenStream& tokens, TokenRange range) {
  std::string name;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (tokens[i].is_identifier()) name = tokens[i].text;
  }
  return name;
}

bool names_bytes(std::string_view name) {
  std::string lower;
  for (const char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.find("byte") != std::string::npos || lower.find("mem") != std::string::npos ||
         lower == "sz" || lower == "size_of";
}

bool counts_elements(const SourceTree& tree, TokenRange size, int depth) {
  const TokenStream& tokens = tree.tokens();
  if (depth > max_nesting || size.begin >= size.end) return false;
  if (tree.mentions(size.begin, size.end, "sizeof")) return false;
  for (std::size_t i = size.begin; i < size.end; ++i) {
    if (tokens[i].kind == TokenKind::number) {
      // A plain number may count bytes, and so may a product with a factor of 2, 4, 8 or 16.
      if (size.end == size.begin + 1 && depth == 0) return false;
      for (const char* width : {"2", "4", "8", "16"}) {
        const bool factor = tokens[i + 1].is("*") || (i > size.begin && tokens[i - 1].is("*"));
        if (factor && tokens[i].is(width)) return false;
      }
      continue;
    }
    if (!tokens[i].is_identifier()) continue;
    if (names_bytes(tokens[i].text)) return false;
    if (tokens[i - 1].is(".") || tokens[i - 1].is("->")) continue;
    for (std::size_t at = 1; at + 2 < tokens.size(); ++at) {
      if (!tokens[at].is(tokens[i].text) || !tokens[at + 1].is("=") || tokens[at + 2].is("=")) {
        continue;
      }
      std::size_t end = at + 2;
      while (end < tokens.size() && !tokens[end].is(";") && !tokens[end].is(",") &&
             !emulate::closes(tokens[end])) {
        end = emulate::opens(tokens[end]) ? tokens.closing(end) + 1 : end + 1;
      }
      if (size.begin <= at && end <= size.end) continue;
      if (!counts_elements(tree, {at + 2, end}, depth + 1)) return false;
    }
  }
  return true;
}

bool alike(const TokenStream& tokens, TokenRange a, TokenRange b) {
  if (a.end - a.begin != b.end - b.begin) return false;
  for (std::size_t i = 0; i < a.end - a.begin; ++i) {
    if (!tokens[a.begin + i].is(tokens[b.begin + i].text)) return false;
  }
  return a.begin < a.end;
}

TokenRange without_brackets(const TokenStream& tokens, TokenRange range) {
  while (tokens[range.begin].is("(") && tokens.closing(range.begin) + 1 == range.end) {
    range = {range.begin + 1, range.end - 1};
  }
  return range;
}

}  // namespace

simt::record::Fix SizedCall::with_sizeof(const std::string& type) const {
  const TokenStream& tokens = tree->tokens();
  std::size_t end = size.end;
  while (end < tokens.size() && !tokens[end].is(";")) ++end;
  bool sum = false;
  for (std::size_t i = size.begin; i < size.end; ++i) {
    sum |= tokens[i].is("+") || tokens[i].is("-") || tokens[i].is("?");
  }
  std::string text = tree->text(size.begin, size.end);
  if (sum) text = "(" + text + ")";
  const std::size_t close = tokens.closing(call_bracket(tokens, name)) + 1;
  std::string before = tree->text(name, size.begin);
  if (size.begin > name && !tokens[size.begin].space.empty()) before += ' ';
  return {"bytes", tree->file(), line(), tree->text(name, close),
          before + text + " * sizeof(" + type + ")" + tree->text(size.end, close)};
}

std::optional<SizedCall> allocation_at(const std::string& file, int line) {
  const SourceTree* const tree = source_tree(file);
  if (tree == nullptr) return std::nullopt;
  const TokenStream& tokens = tree->tokens();
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const bool known = tokens[i].is("cudaMalloc") || tokens[i].is("cudaMallocManaged") ||
                       tokens[i].is("cudaMallocAsync");
    if (!known || tree->line(i) > line) continue;
    const std::size_t open = call_bracket(tokens, i);
    if (open == 0 || tree->line(tokens.closing(open)) < line) continue;
    const std::vector<TokenRange> list = arguments(tokens, open);
    if (list.size() < 2) continue;
    return SizedCall{tree, i, last_name(tokens, list[0]), list[1], {}, {}};
  }
  return std::nullopt;
}

std::vector<SizedCall> copies_without_sizeof(const SourceTree& tree) {
  const TokenStream& tokens = tree.tokens();
  std::vector<SizedCall> found;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!tokens[i].is("cudaMemcpy") && !tokens[i].is("cudaMemcpyAsync")) continue;
    const std::size_t open = call_bracket(tokens, i);
    if (open == 0) continue;
    const std::vector<TokenRange> list = arguments(tokens, open);
    if (list.size() < 4 || !counts_elements(tree, list[2])) continue;
    found.push_back({&tree, i, last_name(tokens, list[0]), list[2], list[1], list[3]});
  }
  return found;
}

bool counts_elements(const SourceTree& tree, TokenRange size) {
  return counts_elements(tree, size, 0);
}

bool is_product_of(const SourceTree& tree, TokenRange bytes, TokenRange elements) {
  const TokenStream& tokens = tree.tokens();
  elements = without_brackets(tokens, elements);
  for (std::size_t i = bytes.begin; i < bytes.end; ++i) {
    if (!tokens[i].is("sizeof") || !tokens[i + 1].is("(")) continue;
    const std::size_t end = tokens.closing(i + 1) + 1;
    if (i == bytes.begin && end < bytes.end && tokens[end].is("*")) {
      return alike(tokens, without_brackets(tokens, {end + 1, bytes.end}), elements);
    }
    if (end == bytes.end && i > bytes.begin + 1 && tokens[i - 1].is("*")) {
      return alike(tokens, without_brackets(tokens, {bytes.begin, i - 1}), elements);
    }
  }
  return false;
}

}  // namespace rung::cuda
