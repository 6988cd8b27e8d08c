// SPDX-License-Identifier: Apache-2.0
// Finds the failing access among the accesses in a line.
#include "rung/emulate/runtime/index_access.hpp"

#include <algorithm>
#include <vector>

#include "rung/emulate/brackets.hpp"

namespace rung::cuda {
namespace {

using emulate::Token;
using emulate::TokenKind;
using emulate::TokenStream;

bool is_keyword(const Token& token) {
  for (const char* word : {"return", "else", "do", "case", "throw", "goto", "delete"}) {
    if (token.is(word)) return true;
  }
  return false;
}
bool is_plain_word(const Token& token) {
  return token.kind == TokenKind::identifier && !is_keyword(token);
}

/// Returns true if name[...] declares an array: T name[n], or T other, name[n].
bool declares(const TokenStream& tokens, std::size_t name, std::size_t statement) {
  if (is_plain_word(tokens[name - 1])) return true;
  if (!tokens[name - 1].is(",") || !is_plain_word(tokens[statement]) ||
      !is_plain_word(tokens[statement + 1])) {
    return false;
  }
  std::size_t i = statement;  // a comma within brackets separates arguments
  while (i < name) i = emulate::opens(tokens[i]) ? tokens.closing(i) + 1 : i + 1;
  return i == name;
}

std::vector<IndexAccess> accesses_at(const SourceTree& tree, const SourceTree::Spot& spot,
                                     const WrongIndex& wrong) {
  const TokenStream& tokens = tree.tokens();
  const Statement& one = *spot.statement;
  const bool simple = one.kind == Statement::Kind::simple;
  const std::size_t begin = simple ? one.begin : one.header_begin;
  const std::size_t end = simple ? one.end : one.header_end;
  std::vector<IndexAccess> list;
  for (std::size_t i = begin + 1; i < end; ++i) {
    if (!tokens[i].is("[") || tokens[i - 1].kind != TokenKind::identifier) continue;
    if (!wrong.array.empty() && !tokens[i - 1].is(wrong.array)) continue;
    if (declares(tokens, i - 1, begin)) continue;
    std::vector<std::size_t> brackets = {i};
    while (tokens[tokens.closing(brackets.back()) + 1].is("[")) {
      brackets.push_back(tokens.closing(brackets.back()) + 1);
    }
    const std::size_t which = brackets[brackets.size() - std::min(wrong.inner, brackets.size())];
    list.push_back({spot, i - 1, which, tokens.closing(which)});
  }
  return list;
}

/// Removes elements that do not satisfy the predicate, unless no element does.
template <class Predicate>
void prefer(std::vector<IndexAccess>& list, Predicate wanted) {
  if (std::any_of(list.begin(), list.end(), wanted)) {
    list.erase(
        std::remove_if(list.begin(), list.end(), [&](const auto& one) { return !wanted(one); }),
        list.end());
  }
}

}  // namespace

std::size_t declaration_of(const SourceTree& tree, const Function& function,
                           std::string_view name) {
  const TokenStream& tokens = tree.tokens();
  for (std::size_t i = function.body.begin + 1; i < function.body.end; ++i) {
    if (!tokens[i].is(name)) continue;
    const bool declares = tokens[i - 1].kind == TokenKind::identifier || tokens[i - 1].is(",") ||
                          tokens[i - 1].is(">");
    return declares && tokens[i + 1].is("[") ? i : 0;
  }
  return 0;
}

std::vector<IndexAccess> accesses_beside(const SourceTree& tree, const IndexAccess& access,
                                         const WrongIndex& wrong) {
  std::vector<IndexAccess> all = accesses_at(tree, access.spot, wrong);
  std::erase_if(all, [&](const IndexAccess& one) {
    return one.name == access.name || !tree.tokens()[one.name].is(tree.tokens()[access.name].text);
  });
  return all;
}

std::optional<IndexAccess> find_access(const SourceTree& tree, const simt::record::Finding& finding,
                                       const WrongIndex& wrong) {
  const TokenStream& tokens = tree.tokens();
  std::vector<IndexAccess> all;
  for (const SourceTree::Spot& spot : tree.spots(finding.line)) {
    for (const IndexAccess& one : accesses_at(tree, spot, wrong)) all.push_back(one);
  }
  const auto declared = [&](const IndexAccess& one) {
    return declaration_of(tree, *one.spot.function, tokens[one.name].text);
  };
  if (wrong.array.empty()) {  // no name: an array of a known type
    prefer(all, [&](const IndexAccess& one) { return declared(one) != 0; });
    prefer(all, [&](const IndexAccess& one) {
      if (declared(one) == 0) return false;
      std::size_t open = declared(one) + 1;
      for (std::size_t i = one.name + 1; i < one.begin; i = tokens.closing(i) + 1) {
        open = tokens.closing(open) + 1;
      }
      const ThreadValues values(tree, *one.spot.function, finding);
      return values.value({open + 1, tokens.closing(open)}) == wrong.count;
    });
  }
  std::erase_if(all, [&](const IndexAccess& one) {
    const ThreadValues values(tree, *one.spot.function, finding);
    const std::optional<std::int64_t> value = values.value(one.index());
    return value.has_value() && *value != wrong.index &&
           !(values.is_unsigned(one.index()) && *value < 0);
  });
  if (wrong.writes.has_value()) {
    prefer(all, [&](const IndexAccess& one) {
      const bool target = tokens[one.end + 1].is("=");
      return target == *wrong.writes;
    });
  }
  // Prefers accesses with an index that can exceed the array on the observed side.
  prefer(all, [&](const IndexAccess& one) {
    return tree.mentions(one.begin, one.end, wrong.before() ? "-" : "+");
  });
  return all.empty() ? std::nullopt : std::optional(all.front());
}

}  // namespace rung::cuda
